import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import type { MasterKey } from "./master-key.ts";

/** Encrypts secrets for storage. An interface, so that a key service can replace the key file. */
export interface SecretSealer {
  /** Id of the current key, stored next to what it sealed. */
  readonly keyId: string;
  /** @param context what the secret is and whose. Opening it with another context fails, so rows cannot be swapped. */
  seal(plain: Uint8Array, context: string): Promise<string>;
  /** @throws UnsealError for another key, another context or changed data. */
  open(sealed: string, context: string): Promise<Uint8Array>;
}

export class UnsealError extends Error {
  override readonly name = "UnsealError";
}

const VERSION = "v1";
/** Prefix of sealed values only. */
export const SEALED_PREFIX = `${VERSION}.`;
const ALGORITHM = "aes-256-gcm";
const IV_BYTES = 12;
const TAG_BYTES = 16;

/** `v1.<key id>.<iv>.<ciphertext and tag>`, the last two in base64url. */
export function aesSealer(key: MasterKey): SecretSealer {
  return {
    keyId: key.id,
    seal: async (plain, context) => {
      const iv = randomBytes(IV_BYTES);
      const cipher = createCipheriv(ALGORITHM, key.bytes, iv).setAAD(Buffer.from(context));
      const sealed = Buffer.concat([cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
      return [VERSION, key.id, iv.toString("base64url"), sealed.toString("base64url")].join(".");
    },
    open: async (text, context) => {
      const [version, keyId, iv, sealed, ...more] = text.split(".");
      if (version !== VERSION || iv === undefined || sealed === undefined || more.length > 0) {
        throw new UnsealError("not a sealed secret");
      }
      if (keyId !== key.id) throw new UnsealError(`sealed with key ${keyId}, but this is ${key.id}`);
      return decrypt(key, { iv: decode(iv), sealed: decode(sealed), context });
    },
  };
}

/** Node ignores invalid base64 characters; changed data must not be accepted. */
function decode(part: string): Buffer {
  const bytes = Buffer.from(part, "base64url");
  if (bytes.toString("base64url") !== part) throw new UnsealError("not base64url");
  return bytes;
}

interface Envelope {
  readonly iv: Buffer;
  readonly sealed: Buffer;
  readonly context: string;
}

function decrypt(key: MasterKey, { iv, sealed, context }: Envelope): Uint8Array {
  if (iv.length !== IV_BYTES || sealed.length < TAG_BYTES) throw new UnsealError("part of the envelope is missing");
  const decipher = createDecipheriv(ALGORITHM, key.bytes, iv, { authTagLength: TAG_BYTES })
    .setAAD(Buffer.from(context))
    .setAuthTag(sealed.subarray(-TAG_BYTES));
  try {
    return Buffer.concat([decipher.update(sealed.subarray(0, -TAG_BYTES)), decipher.final()]);
  } catch (error) {
    throw new UnsealError("the secret or its context was changed", { cause: error });
  }
}
