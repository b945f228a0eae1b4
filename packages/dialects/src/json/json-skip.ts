import { DomainError } from "@fairlead/protocol/errors";
import { MAX_JSON_DEPTH } from "@fairlead/protocol/values/parse-json";
import type { ByteReader } from "./byte-reader.ts";

/** Skips JSON without building it, with enough checks that two parsers cannot see different calls. */

/** Below the call itself. */
const MAX_DEPTH = MAX_JSON_DEPTH - 1;
const SCALAR = 0;
const OBJECT = 1;
const ARRAY = 2;
const LONGEST_WORD = "false".length;

export const BYTE = {
  quote: 0x22,
  comma: 0x2c,
  colon: 0x3a,
  openBracket: 0x5b,
  closeBracket: 0x5d,
  openBrace: 0x7b,
  closeBrace: 0x7d,
} as const;

export function malformed(reader: ByteReader, problem: string): DomainError {
  return new DomainError("malformed_json", `The body is not valid JSON: ${problem} (at byte ${reader.position}).`);
}

function unexpected(reader: ByteReader, wanted: string): DomainError {
  return malformed(reader, reader.peek() === -1 ? "it is truncated" : `expected ${wanted}`);
}

/** Skips whitespace and this byte, if it is next. */
export function skipIf(reader: ByteReader, byte: number): boolean {
  if (reader.peekAfterSpace() !== byte) return false;
  reader.skip();
  return true;
}

/** Skips whitespace and this byte, which must be next. */
export function expect(reader: ByteReader, byte: number): void {
  if (!skipIf(reader, byte)) throw unexpected(reader, `"${String.fromCharCode(byte)}"`);
}

/** Skips a string, including the opening quote. */
export function skipString(reader: ByteReader): void {
  expect(reader, BYTE.quote);
  if (!reader.skipString()) throw unexpected(reader, "a closing quote");
}

/** Entered containers by depth. Shared, because only one value is skipped at a time. */
const kinds = new Uint8Array(MAX_DEPTH);

/** Skips one value of any kind, including leading whitespace. */
export function skipValue(reader: ByteReader): void {
  let depth = 0;
  for (;;) {
    const kind = openValue(reader);
    if (kind !== SCALAR) {
      if (depth === MAX_DEPTH) throw malformed(reader, `nesting deeper than ${MAX_JSON_DEPTH} levels`);
      kinds[depth++] = kind;
      continue;
    }
    while (depth > 0 && !continues(reader, kinds[depth - 1] === OBJECT)) depth--;
    if (depth === 0) return;
  }
}

/** Skips a scalar or an empty container, or enters a container. @returns what was entered, or SCALAR. */
function openValue(reader: ByteReader): number {
  const first = reader.peekAfterSpace();
  if (first === BYTE.quote) {
    skipString(reader);
    return SCALAR;
  }
  if (first === BYTE.openBrace) {
    reader.skip();
    if (skipIf(reader, BYTE.closeBrace)) return SCALAR;
    skipKey(reader);
    return OBJECT;
  }
  if (first === BYTE.openBracket) {
    reader.skip();
    return skipIf(reader, BYTE.closeBracket) ? SCALAR : ARRAY;
  }
  skipLiteral(reader, first);
  return SCALAR;
}

/** After a value in a container: moves to the next value (true), or past the end of the container (false). */
function continues(reader: ByteReader, inObject: boolean): boolean {
  if (skipIf(reader, inObject ? BYTE.closeBrace : BYTE.closeBracket)) return false;
  expect(reader, BYTE.comma);
  if (inObject) skipKey(reader);
  return true;
}

function skipKey(reader: ByteReader): void {
  skipString(reader);
  expect(reader, BYTE.colon);
}

/** Digits are left to the upstream to validate: they cannot hide a field. */
function skipLiteral(reader: ByteReader, first: number): void {
  if (first === 0x2d || isDigit(first)) {
    do reader.skip();
    while (isNumberByte(reader.peek()));
    return;
  }
  const start = reader.position;
  while (isLowerLetter(reader.peek()) && reader.position - start < LONGEST_WORD) reader.skip();
  const word = reader.slice(start, reader.position).toString("latin1");
  if (word !== "true" && word !== "false" && word !== "null") throw unexpected(reader, "a value");
}

function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39;
}

function isNumberByte(byte: number): boolean {
  return isDigit(byte) || byte === 0x2e || byte === 0x2b || byte === 0x2d || byte === 0x65 || byte === 0x45;
}

function isLowerLetter(byte: number): boolean {
  return byte >= 0x61 && byte <= 0x7a;
}
