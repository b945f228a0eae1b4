const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
/** Strings up to this length are read byte by byte: a native search costs more than it saves there. */
const SHORT_STRING = 32;

/** How much structure JSON may have before it is parsed. */
export interface JsonStructure {
  /** How deep arrays and objects may nest. */
  readonly maxDepth: number;
  /** How many values it may hold, about: its commas, and what opens. */
  readonly maxValues: number;
}

/** Why JSON is not parsed; null where it may be. */
export type JsonExcess = "depth" | "values" | null;

/**
 * Reads each byte once and does not check that the text is JSON: a parser does that, once it is known what it will cost. The time
 * that a parser takes, and the memory, follow the number of values far more than the number of bytes.
 */
export function excessOf(bytes: Uint8Array, { maxDepth, maxValues }: JsonStructure): JsonExcess {
  let depth = 0;
  let values = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at] ?? 0;
    if (byte === QUOTE) {
      at = endOfString(bytes, at + 1);
    } else if (byte === COMMA) {
      values += 1;
      if (values > maxValues) return "values";
    } else if (byte < OPEN_ARRAY) {
      // Most of what is left is white space, digits and colons.
    } else if (byte === OPEN_ARRAY || byte === OPEN_OBJECT) {
      depth += 1;
      values += 1;
      if (depth > maxDepth) return "depth";
      if (values > maxValues) return "values";
    } else if ((byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) && depth > 0) {
      depth -= 1;
    }
  }
  return null;
}

/** True while arrays and objects in `bytes` nest no deeper than `max`. */
export function jsonDepthWithin(bytes: Uint8Array, max: number): boolean {
  return excessOf(bytes, { maxDepth: max, maxValues: Number.POSITIVE_INFINITY }) === null;
}

/** Where the string whose first byte is at `start` ends: its closing quote, or the end of the bytes. */
function endOfString(bytes: Uint8Array, start: number): number {
  let at = start;
  while (at < bytes.length) {
    const near = Math.min(bytes.length, at + SHORT_STRING);
    for (; at < near; at += 1) {
      const byte = bytes[at];
      if (byte === QUOTE) return at;
      if (byte === BACKSLASH) at += 1;
    }
    const from = at;
    const quote = bytes.indexOf(QUOTE, from);
    if (quote === -1) return bytes.length;
    if (!isEscaped(bytes, from, quote)) return quote;
    at = quote + 1;
  }
  return at;
}

/** An odd number of backslashes before a quote escapes it. */
function isEscaped(bytes: Uint8Array, start: number, quote: number): boolean {
  let first = quote;
  while (first > start && bytes[first - 1] === BACKSLASH) first -= 1;
  return (quote - first) % 2 === 1;
}
