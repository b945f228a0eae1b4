import { X509Certificate } from "node:crypto";
import { getCACertificates, setDefaultCACertificates } from "node:tls";

const BEGIN = "-----BEGIN CERTIFICATE-----";
const END = "-----END CERTIFICATE-----";

/** Lets every later TLS connection of this process trust the authorities of a PEM as well. @throws Error where it holds none, or a broken one */
export function trustAlso(pem: string): void {
  setDefaultCACertificates([...getCACertificates("default"), ...certificatesIn(pem)]);
}

function certificatesIn(pem: string): readonly string[] {
  const certificates = pem
    .split(END)
    .slice(0, -1)
    .map((part) => part.slice(Math.max(0, part.lastIndexOf(BEGIN))) + END);
  if (certificates.length === 0) throw new Error("it holds no certificate in PEM form");
  for (const certificate of certificates) new X509Certificate(certificate);
  return certificates;
}
