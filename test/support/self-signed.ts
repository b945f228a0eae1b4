import { generateKeyPairSync, sign } from "node:crypto";

/** A certificate for 127.0.0.1 and names that is its own authority, made on the spot: no key lies in the repository. */
export function selfSigned(names: readonly string[] = []): { readonly key: string; readonly cert: string } {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const algorithm = sequence(oid(0x2b, 0x65, 0x70));
  const name = sequence(der(0x31, sequence(oid(0x55, 0x04, 0x03), der(0x0c, Buffer.from("127.0.0.1")))));
  const dns = names.map((dnsName) => der(0x82, Buffer.from(dnsName)));
  const extensions = sequence(
    // Basic constraints: an authority. Subject alternative name: the address.
    sequence(oid(0x55, 0x1d, 0x13), der(0x04, sequence(der(0x01, Buffer.from([0xff]))))),
    sequence(oid(0x55, 0x1d, 0x11), der(0x04, sequence(der(0x87, Buffer.from([127, 0, 0, 1])), ...dns))),
  );
  const content = sequence(
    der(0xa0, integer(2)),
    integer(1),
    algorithm,
    name,
    sequence(der(0x17, Buffer.from("200101000000Z")), der(0x17, Buffer.from("491231235959Z"))),
    name,
    publicKey.export({ type: "spki", format: "der" }),
    der(0xa3, extensions),
  );
  const signature = Buffer.concat([Buffer.from([0]), sign(null, content, privateKey)]);
  const certificate = sequence(content, algorithm, der(0x03, signature)).toString("base64");
  return {
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${certificate.replace(/.{64}/g, "$&\n")}\n-----END CERTIFICATE-----\n`,
  };
}

function der(tag: number, content: Buffer): Buffer {
  const { length } = content;
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

function sequence(...parts: Buffer[]): Buffer {
  return der(0x30, Buffer.concat(parts));
}

function oid(...bytes: number[]): Buffer {
  return der(0x06, Buffer.from(bytes));
}

function integer(value: number): Buffer {
  return der(0x02, Buffer.from([value]));
}
