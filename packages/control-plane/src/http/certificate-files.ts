import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { StartError } from "../start-error.ts";

/** A certificate with its chain and its key, as they lie on disk. */
export interface CertificateFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

export interface Certificate {
  /** PEM. */
  readonly cert: string;
  readonly key: string;
  /** Unix milliseconds. */
  readonly expiresAt: number;
  /** The names that it is for, as OpenSSL writes them. */
  readonly names: string;
}

/** @throws StartError where they cannot be read, or are no pair, as while somebody is just replacing them */
export function readCertificate({ certFile, keyFile }: CertificateFiles): Certificate {
  const [cert, key] = [read(certFile), read(keyFile)];
  const parsed = parse(certFile, () => new X509Certificate(cert));
  const privateKey = parse(keyFile, () => createPrivateKey(key));
  if (!parsed.checkPrivateKey(privateKey)) throw new StartError(`The key in ${keyFile} is not that of ${certFile}.`);
  return { cert, key, expiresAt: parsed.validToDate.getTime(), names: parsed.subjectAltName ?? parsed.subject };
}

function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new StartError(`The TLS file ${wordsOf(error)} cannot be read. Correct server.tls, or the file's owner.`);
  }
}

function parse<T>(file: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw new StartError(`${file} is not what server.tls needs, in PEM: ${wordsOf(error)}.`);
  }
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
