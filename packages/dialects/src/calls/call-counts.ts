import type { ByteReader } from "../json/byte-reader.ts";
import { decodeString } from "../json/key-names.ts";
import type { Span } from "../json/splice.ts";

/** Numeric limits in a call, read as the highest value that any upstream would see: they are forwarded as submitted. */

/** Number of choices, and the maximum length of each. */
export interface CallCounts {
  readonly n: number | null;
  readonly best_of: number | null;
  /** Infinity if some upstream may treat the value as no limit; null if the field is absent. */
  readonly max_tokens: number | null;
  readonly max_completion_tokens: number | null;
  readonly max_output_tokens: number | null;
  readonly n_predict: number | null;
  readonly num_predict: number | null;
  readonly max_new_tokens: number | null;
}
export type CountField = keyof CallCounts;
export type MutableCounts = { -readonly [Name in CountField]: number | null };

export const NO_COUNTS: CallCounts = {
  n: null,
  best_of: null,
  max_tokens: null,
  max_completion_tokens: null,
  max_output_tokens: null,
  n_predict: null,
  num_predict: null,
  max_new_tokens: null,
};

/** The most choices that upstreams return per call; assumed if the requested number is unreadable. */
const MOST_CHOICES = 128;
const MAX_NUMBER_BYTES = 32;
const NUMBER = /^\d+(?:\.\d*)?(?:e\+?\d+)?$/i;
/** Strings that some language parses as a number. */
const NUMBER_TEXT = /^\s*\+?\d[\d_]*(?:\.\d*)?(?:e\+?\d+)?\s*$/i;
const QUOTE = '"';

/** The number of requested choices. */
export function choicesOf({ n, best_of }: CallCounts): number {
  return Math.min(Number.MAX_SAFE_INTEGER, Math.max(1, n ?? 1, best_of ?? 1));
}

/** @param span of the value. */
export function readCount(
  reader: ByteReader,
  span: Span,
  { field, counts }: { readonly field: CountField; readonly counts: MutableCounts },
): void {
  addCount(span.end - span.start <= MAX_NUMBER_BYTES ? textOf(reader, span) : "", { field, counts });
}

/** @param value parsed, from a body that this process writes. */
export function countValue(
  value: unknown,
  { field, counts }: { readonly field: CountField; readonly counts: MutableCounts },
): void {
  const json = JSON.stringify(value);
  const bytes = Buffer.from(json);
  // Same result as `textOf`.
  const text = typeof value === "string" && json.includes("\\") ? `"${value}"` : bytes.toString("latin1");
  addCount(bytes.length <= MAX_NUMBER_BYTES ? text : "", { field, counts });
}

/** @param text of the value; "" if it is long. */
function addCount(
  text: string,
  { field, counts }: { readonly field: CountField; readonly counts: MutableCounts },
): void {
  if (text === "null") return;
  const most = field === "n" || field === "best_of" ? MOST_CHOICES : Infinity;
  counts[field] = Math.max(counts[field] ?? 0, numberIn(text) ?? most);
}

/** @returns null if some upstream may read any value. */
function numberIn(text: string): number | null {
  const number = text.startsWith(QUOTE) ? textNumber(text.slice(1, -1)) : plainNumber(text);
  // Some upstreams treat zero and negative numbers as no limit.
  return number !== null && number > 0 ? number : null;
}

const plainNumber = (text: string): number | null => (NUMBER.test(text) ? Math.ceil(Number(text)) : null);

const textNumber = (text: string): number | null =>
  NUMBER_TEXT.test(text) ? Math.ceil(Number(text.replaceAll("_", ""))) : null;

function textOf(reader: ByteReader, span: Span): string {
  const bytes = reader.slice(span.start, span.end);
  const text = bytes.toString("latin1");
  return text.startsWith(QUOTE) && text.includes("\\") ? `"${decodeString(reader, span)}"` : text;
}
