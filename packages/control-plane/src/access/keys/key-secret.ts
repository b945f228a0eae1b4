import { crc32 } from "node:zlib";
import { PROJECT_KEY_PREFIX } from "../auth/credential-prefixes.ts";

/** Format of project keys: `flk_<public id>_<secret><checksum>` (docs/keys.md). Pure. */

const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const PUBLIC_ID_CHARACTERS = 16;
/** 43 × log2(62) = 256 bits. */
const SECRET_CHARACTERS = 43;
const CHECKSUM_CHARACTERS = 6;
const KEY_FORM = new RegExp(
  `^${PROJECT_KEY_PREFIX}([0-9A-Za-z]{${PUBLIC_ID_CHARACTERS}})_[0-9A-Za-z]{${SECRET_CHARACTERS + CHECKSUM_CHARACTERS}}$`,
);

const PUBLIC_ID_FORM = new RegExp(`^[0-9A-Za-z]{${PUBLIC_ID_CHARACTERS}}$`);

/** Whether a text is a key's public part. */
export function isPublicId(text: string): boolean {
  return PUBLIC_ID_FORM.test(text);
}

/** @param randomBytes n cryptographically random bytes. @returns the whole key and its public part. */
export function makeKey(randomBytes: (n: number) => Uint8Array): { value: string; publicId: string } {
  const publicId = base62Text(PUBLIC_ID_CHARACTERS, randomBytes);
  const unchecked = `${PROJECT_KEY_PREFIX}${publicId}_${base62Text(SECRET_CHARACTERS, randomBytes)}`;
  return { value: unchecked + checksum(unchecked), publicId };
}

/** Whether a text is a complete project key with a valid checksum. Leak scanners can check this offline. */
export function parseKey(text: string): { readonly publicId: string } | null {
  const publicId = KEY_FORM.exec(text)?.[1];
  if (publicId === undefined) return null;
  const unchecked = text.slice(0, -CHECKSUM_CHARACTERS);
  return checksum(unchecked) === text.slice(-CHECKSUM_CHARACTERS) ? { publicId } : null;
}

/** CRC-32 in six base 62 digits, which hold any 32 bits. */
function checksum(text: string): string {
  let rest = crc32(text);
  let digits = "";
  for (let i = 0; i < CHECKSUM_CHARACTERS; i++) {
    digits = BASE62.charAt(rest % BASE62.length) + digits;
    rest = Math.floor(rest / BASE62.length);
  }
  return digits;
}

/** Discards bytes of 248 and above, which would make the first characters more likely. */
function base62Text(length: number, randomBytes: (n: number) => Uint8Array): string {
  const fair = Math.floor(256 / BASE62.length) * BASE62.length;
  let text = "";
  while (text.length < length) {
    for (const byte of randomBytes(length - text.length)) {
      if (byte < fair) text += BASE62.charAt(byte % BASE62.length);
    }
  }
  return text;
}
