import { parseJson } from "@fairlead/protocol/values/parse-json";
import type { ByteReader } from "./byte-reader.ts";
import { BYTE, expect, malformed, skipString } from "./json-skip.ts";
import type { Span } from "./splice.ts";

const MAX_ESCAPE_BYTES = 6;
const BACKSLASH = 0x5c;
const FIRST_NON_ASCII = 0x80;
const TO_LOWER_CASE = 0x20;

export interface FoundName<N extends string> {
  readonly name: N;
  /** False for a spelling such as "Model", which only lenient servers accept. */
  readonly exact: boolean;
}

interface Named<N extends string> {
  readonly bytes: Buffer;
  readonly exact: FoundName<N>;
  readonly similar: FoundName<N>;
}

/** Finds names among an object's keys, also in spellings that case-insensitive servers accept, including Unicode folds (such as Go's JSON). */
export class KeyNames<N extends string> {
  /** By length, so that most keys need not be read. */
  readonly #byLength: Named<N>[][] = [];
  readonly #exact = new Map<string, FoundName<N>>();
  readonly #longest: number;

  constructor(names: readonly N[]) {
    for (const name of names) {
      const named = { bytes: Buffer.from(name), exact: { name, exact: true }, similar: { name, exact: false } };
      this.#exact.set(name, named.exact);
      this.#byLength[name.length] = [...(this.#byLength[name.length] ?? []), named];
    }
    this.#longest = this.#byLength.length * MAX_ESCAPE_BYTES;
  }

  /**
   * @param start of the key, @param end of it, including quotes.
   * @throws DomainError `malformed_json` for an invalid escape.
   */
  find(reader: ByteReader, start: number, end: number): FoundName<N> | undefined {
    const length = end - start - 2;
    if (length > this.#longest) return undefined;
    const isHere = start >= reader.chunkStart;
    const bytes = isHere ? reader.chunk : reader.slice(start, end);
    const from = isHere ? start - reader.chunkStart + 1 : 1;
    const named = this.#byLength[length];
    if (named !== undefined) {
      for (const one of named) if (spells(bytes, from, one.bytes)) return one.exact;
    }
    if (isPlain(bytes, from, from + length)) {
      const first = (bytes[from] ?? 0) | TO_LOWER_CASE;
      if (named === undefined || !named.some((one) => one.bytes[0] === first)) return undefined;
    }
    return this.#similar(decodeString(reader, { start, end }));
  }

  /** The same of a key that is parsed. */
  named(key: string): FoundName<N> | undefined {
    if (key.length >= this.#byLength.length) return undefined;
    const exact = this.#exact.get(key);
    if (exact !== undefined) return exact;
    // Of most keys the first letter says that they are none of these.
    const first = key.charCodeAt(0) | TO_LOWER_CASE;
    const isOther = !this.#byLength[key.length]?.some(({ bytes }) => bytes[0] === first) && isAscii(key);
    return isOther ? undefined : this.#similar(key);
  }

  #similar(key: string): FoundName<N> | undefined {
    const folded = key.toUpperCase().toLowerCase();
    const one = this.#byLength[folded.length]?.find(({ exact }) => exact.name === folded);
    return key === folded ? one?.exact : one?.similar;
  }
}

function spells(bytes: Buffer, from: number, name: Buffer): boolean {
  for (let at = 0; at < name.length; at++) if (bytes[from + at] !== name[at]) return false;
  return true;
}

function isAscii(text: string): boolean {
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) >= FIRST_NON_ASCII) return false;
  return true;
}

/** Whether the bytes are ASCII without escapes: then they spell nothing but what they show. */
function isPlain(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    const byte = bytes[at] ?? 0;
    if (byte >= FIRST_NON_ASCII || byte === BACKSLASH) return false;
  }
  return true;
}

/**
 * Skips a key and its colon.
 * @throws DomainError `malformed_json`
 */
export function readKey<N extends string>(reader: ByteReader, names: KeyNames<N>): FoundName<N> | undefined {
  reader.peekAfterSpace();
  const start = reader.position;
  skipString(reader);
  const found = names.find(reader, start, reader.position);
  expect(reader, BYTE.colon);
  return found;
}

/** @throws DomainError `malformed_json` for an invalid escape. */
export function decodeString(reader: ByteReader, span: Span): string {
  const bytes = reader.slice(span.start, span.end);
  if (!bytes.includes("\\")) return bytes.toString("utf8", 1, bytes.length - 1);
  try {
    return String(parseJson(bytes));
  } catch {
    throw malformed(reader, "a string has an invalid escape sequence");
  }
}
