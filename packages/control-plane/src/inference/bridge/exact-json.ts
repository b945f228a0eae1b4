import { DomainError } from "@fairlead/protocol/errors";

/**
 * JSON whose numbers survive. A number that a double cannot hold (`9223372036854775807` in a tool's schema, a seed, `1e400`)
 * is kept as its source text, an object that `JSON.stringify` writes as it came; every other number is a plain number.
 */

interface SourceTextJson {
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { readonly source?: string }) => unknown,
  ): unknown;
  rawJSON(text: string): object;
}

// Part of the language since ES2026, and of Node 24; TypeScript's library lags behind.
const sourceTextJson = JSON as unknown as SourceTextJson;

/**
 * Up to 15 digits and two digits of exponent always survive: then the fast parser will do. A number has one of these before it; ids
 * and hashes in texts mostly do not.
 */
const MAY_LOSE = /(?:^|[\s[:,-])[\d.]{16}|\d[eE][+-]?\d{3}/;

/** A longer spelling is kept without a look at it: comparing a million digits would cost more than they are worth. */
const LONGEST_COMPARED = 64;

/** What is nested deeper cannot be written again: `JSON.stringify` runs out of stack. Nobody means it. */
const DEEPEST = 500;

/** @throws DomainError `malformed_json`; its message does not quote the text. */
export function parseExact(text: string): unknown {
  try {
    const value: unknown = MAY_LOSE.test(text) ? sourceTextJson.parse(text, keepExact) : JSON.parse(text);
    if (text.length <= 2 * DEEPEST || !isDeeper(value, DEEPEST)) return value;
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw new DomainError("malformed_json", "This is not valid JSON.", { cause });
  }
  throw new DomainError("malformed_json", "The JSON is nested too deeply.");
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((each) => isDeeper(each, levels - 1));
}

function keepExact(_key: string, value: unknown, { source }: { readonly source?: string }): unknown {
  if (typeof value !== "number" || source === undefined || source === String(value)) return value;
  return isHeld(source, value) ? value : sourceTextJson.rawJSON(source);
}

function isHeld(source: string, value: number): boolean {
  return Number.isFinite(value) && source.length <= LONGEST_COMPARED && decimal(source) === decimal(String(value));
}

/** One spelling for one value: `1.50`, `15e-1` and `1.5` are all `15e-1`. */
function decimal(text: string): string {
  const [, sign = "", whole = "", fraction = "", exponent = "0"] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? [];
  const digits = (whole + fraction).replace(/^0+/, "");
  const significant = digits.replace(/0+$/, "");
  if (significant === "") return "0";
  return `${sign}${significant}e${BigInt(exponent) - BigInt(fraction.length) + BigInt(digits.length - significant.length)}`;
}
