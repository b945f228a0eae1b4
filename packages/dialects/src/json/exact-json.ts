import { createHash } from "node:crypto";
import { DomainError } from "@fairlead/protocol/errors";
import { checkJson, JsonLimitError } from "@fairlead/protocol/values/parse-json";
import { withoutTrailing } from "@fairlead/protocol/values/text";

/**
 * JSON with exact numbers. A number that a double cannot represent (`9223372036854775807`, `1e400`) keeps its source text, in an object
 * that `JSON.stringify` writes unchanged; other numbers are plain.
 */

// ES2026 and Node 24; missing in TypeScript's library.
const { rawJSON } = JSON as unknown as { readonly rawJSON: (text: string) => object };

/**
 * Up to 15 digits and two digits of exponent are always exact, so the fast parser suffices. One of these characters precedes a number; ids and hashes
 * in strings rarely match.
 */
const MAY_LOSE = /(?:^|[\s[:,-])[\d.]{16}|\d[eE][+-]?\d{3}/;

/** The same for integers outside strings. */
const LONG_NUMBER = /-?\d[\d.]{15,}(?:[eE][+-]?\d+)?|-?\d[\d.]{0,14}[eE][+-]?\d{3,}/g;
const SHORTEST = "1e400".length;
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
const COLON = /\s*:/y;

/** Longer spellings are kept unchecked: comparing a million digits is too expensive. */
const LONGEST_COMPARED = 64;

/** Each costs microseconds; real calls do not have thousands. */
const MAX_LOST_NUMBERS = 10_000;

/** @throws DomainError `malformed_json`, without quoting the text. */
export function parseExact(json: string | Uint8Array): unknown {
  try {
    checkJson(json);
    return parse(typeof json === "string" ? json : new TextDecoder().decode(json), MAX_LOST_NUMBERS);
  } catch (cause) {
    const message = cause instanceof JsonLimitError ? cause.message : "This is not valid JSON.";
    throw new DomainError("malformed_json", message, { cause });
  }
}

/** For text written by this server, which may exceed the limits for callers. @throws SyntaxError */
export function parseStoredExact(text: string): unknown {
  return parse(text, Number.POSITIVE_INFINITY);
}

function parse(text: string, maxLost: number): unknown {
  return MAY_LOSE.test(text) ? parseMarked(text, maxLost) : JSON.parse(text);
}

/** Replaces numbers that would lose precision with strings before parsing. A reviver would cost microseconds per value. */
function parseMarked(text: string, maxLost: number): unknown {
  const lost = lostNumbers(text, maxLost);
  if (lost.length === 0) return JSON.parse(text);
  // Derived from the text, so that no string in it can look the same.
  const mark = createHash("sha256").update(text).digest("base64url");
  let marked = "";
  let copied = 0;
  for (const [nth, { at, source }] of lost.entries()) {
    marked += `${text.slice(copied, at)}"${mark}${nth}"`;
    copied = at + source.length;
  }
  const value: unknown = JSON.parse(marked + text.slice(copied));
  return restored(value, { mark, lost });
}

interface Lost {
  readonly at: number;
  readonly source: string;
}

/** @throws JsonLimitError */
function lostNumbers(text: string, maxLost: number): readonly Lost[] {
  const lost: Lost[] = [];
  for (let at = 0; at < text.length; ) {
    const quote = text.indexOf('"', at);
    const end = quote === -1 ? text.length : quote;
    if (end - at >= SHORTEST) {
      const between = text.slice(at, end);
      for (const { 0: source, index } of between.matchAll(LONG_NUMBER)) {
        if (!isLost(source) || isKey(between, index + source.length)) continue;
        if (lost.length === maxLost)
          throw new JsonLimitError(`The JSON contains more than ${maxLost} very long numbers.`);
        lost.push({ at: at + index, source });
      }
    }
    at = quote === -1 ? text.length : stringEnd(text, quote + 1);
  }
  return lost;
}

/** @returns the position after the closing quote, or the end of the text. */
function stringEnd(text: string, start: number): number {
  for (let from = start; ; ) {
    const quote = text.indexOf('"', from);
    if (quote === -1) return text.length;
    let first = quote;
    while (first > from && text[first - 1] === "\\") first--;
    if ((quote - first) % 2 === 0) return quote + 1;
    from = quote + 1;
  }
}

/** A number as a key stays an error. */
function isKey(text: string, end: number): boolean {
  COLON.lastIndex = end;
  return COLON.test(text);
}

function isLost(source: string): boolean {
  if (!NUMBER.test(source)) return false;
  const value = Number(source);
  if (source === String(value)) return false;
  return !Number.isFinite(value) || source.length > LONGEST_COMPARED || decimal(source) !== decimal(String(value));
}

interface Marked {
  readonly mark: string;
  readonly lost: readonly Lost[];
}

/** In place; its depth was checked before. */
function restored(value: unknown, marked: Marked): unknown {
  if (typeof value === "string") {
    if (!value.startsWith(marked.mark)) return value;
    return rawJSON(marked.lost[Number(value.slice(marked.mark.length))]?.source ?? "null");
  }
  if (typeof value !== "object" || value === null) return value;
  const members = value as Record<string, unknown>;
  for (const key of Object.keys(members)) {
    const member = members[key];
    if (typeof member === "string" || typeof member === "object") members[key] = restored(member, marked);
  }
  return value;
}

/** Normalizes spellings: `1.50`, `15e-1` and `1.5` all become `15e-1`. */
function decimal(text: string): string {
  const [, sign = "", whole = "", fraction = "", exponent = "0"] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? [];
  const digits = (whole + fraction).replace(/^0+/, "");
  const significant = withoutTrailing(digits, "0");
  if (significant === "") return "0";
  return `${sign}${significant}e${BigInt(exponent) - BigInt(fraction.length) + BigInt(digits.length - significant.length)}`;
}
