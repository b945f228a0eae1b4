import { createHash } from "node:crypto";
import { crc32 } from "node:zlib";
import { rfc3339 } from "@fairlead/protocol/clock";
import type { ProjectKey } from "@fairlead/protocol/resources";
import { z } from "zod";
import { PROJECT_KEY_PREFIX } from "../auth/credential-prefixes.ts";

/** The form of project keys: `flk_<public id>_<secret><checksum>`. Pure. */

export interface KeyRecord {
  readonly id: string;
  readonly projectId: string;
  readonly userId: string;
  readonly name: string;
  /** The part of the key that logs and lists show. */
  readonly publicId: string;
  /** SHA-256 (hex) of the whole key; the key itself is kept nowhere. */
  readonly secretHash: string;
  readonly enabled: boolean;
  readonly expiresAt: number | null;
  readonly createdAt: number;
}

const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const PUBLIC_ID_CHARACTERS = 16;
/** 43 × log2(62) = 256 bits. */
const SECRET_CHARACTERS = 43;
const CHECKSUM_CHARACTERS = 6;
const KEY_FORM = new RegExp(
  `^${PROJECT_KEY_PREFIX}([0-9A-Za-z]{${PUBLIC_ID_CHARACTERS}})_[0-9A-Za-z]{${SECRET_CHARACTERS + CHECKSUM_CHARACTERS}}$`,
);

export const keyNameSchema = z
  .string()
  .trim()
  .min(1, "must not be empty")
  .max(80, "must have at most 80 characters")
  .regex(/^\P{Cc}*$/u, "must not hold control characters");

/** @param randomBytes n bytes of good randomness. @returns the whole key and its public part. */
export function makeKey(randomBytes: (n: number) => Uint8Array): { value: string; publicId: string } {
  const publicId = base62Text(PUBLIC_ID_CHARACTERS, randomBytes);
  const unchecked = `${PROJECT_KEY_PREFIX}${publicId}_${base62Text(SECRET_CHARACTERS, randomBytes)}`;
  return { value: unchecked + checksum(unchecked), publicId };
}

/** Whether a text is a whole, untyped-over project key. Scanners for leaks can tell so without asking us. */
export function parseKey(text: string): { readonly publicId: string } | null {
  const publicId = KEY_FORM.exec(text)?.[1];
  if (publicId === undefined) return null;
  const unchecked = text.slice(0, -CHECKSUM_CHARACTERS);
  return checksum(unchecked) === text.slice(-CHECKSUM_CHARACTERS) ? { publicId } : null;
}

export function hashKey(value: string): string {
  return createHash("sha256").update(value).digest("hex");
}

/** @param keyValue only in the answer that creates the key. */
export function toProjectKey(record: KeyRecord, keyValue?: string): ProjectKey {
  return {
    id: record.id,
    projectId: record.projectId,
    userId: record.userId,
    name: record.name,
    keyId: record.publicId,
    ...(keyValue === undefined ? {} : { keyValue }),
    createdAt: rfc3339(record.createdAt),
  };
}

/** CRC-32 in six base 62 digits: enough for any 32 bits. */
function checksum(text: string): string {
  let rest = crc32(text);
  let digits = "";
  for (let i = 0; i < CHECKSUM_CHARACTERS; i++) {
    digits = BASE62.charAt(rest % BASE62.length) + digits;
    rest = Math.floor(rest / BASE62.length);
  }
  return digits;
}

/** Bytes from 248 on are thrown away: with them the first characters would come up more often. */
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
