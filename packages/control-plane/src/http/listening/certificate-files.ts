import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { StartError } from "../../installation/process/start-error.ts";

/** A certificate chain and its key as stored on disk. */
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
  /** Its names, in OpenSSL's form. */
  readonly names: string;
}

/** @throws StartError if they cannot be read or do not match, for example while they are being replaced */
export function readCertificate({ certFile, keyFile }: CertificateFiles): Certificate {
  const [cert, key] = [read(certFile), read(keyFile)];
  const parsed = parse(certFile, () => new X509Certificate(cert));
  const privateKey = parse(keyFile, () => createPrivateKey(key));
  if (!parsed.checkPrivateKey(privateKey))
    throw new StartError(`The key in ${keyFile} does not match the certificate in ${certFile}.`);
  return { cert, key, expiresAt: parsed.validToDate.getTime(), names: parsed.subjectAltName ?? parsed.subject };
}

function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new StartError(`The TLS file ${wordsOf(error)} cannot be read. Correct server.tls or the owner of the file.`);
  }
}

function parse<T>(file: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw new StartError(`${file} is not a valid PEM file for server.tls: ${wordsOf(error)}.`);
  }
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
