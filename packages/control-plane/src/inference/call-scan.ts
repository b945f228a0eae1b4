import { DomainError } from "@fairlead/protocol/errors";
import { ByteReader } from "./byte-reader.ts";
import { BYTE, expect, malformed, skipIf, skipString, skipValue } from "./json-skip.ts";
import type { Span } from "./splice.ts";
import { BYTES_PER_TOKEN } from "./token-usage.ts";

/** Reads what routing needs out of a call's body in one pass over its bytes; nothing is parsed or copied (design §8, §13). */

export interface CallScan extends Inside {
  /** Null where the body names no model. */
  readonly model: { readonly name: string; readonly span: Span } | null;
  readonly stream: boolean;
  readonly streamOptions: StreamOptions | null;
  /** The most tokens that the caller wants for an answer; null where the body sets no usable limit. */
  readonly outputLimit: number | null;
  /** How many answers the caller wants at once. */
  readonly choices: number;
  /** An estimate, for what has to be known before the call. */
  readonly inputTokens: number;
}

export interface StreamOptions extends Inside {
  /** The whole value: an object, or null. */
  readonly span: Span;
  readonly isNull: boolean;
  readonly includeUsage: Flag | null;
}

interface Flag {
  readonly value: boolean;
  readonly span: Span;
}

/** Where a member can be put into an object. */
interface Inside {
  /** After the opening brace. */
  readonly start: number;
  /** Whether no member stands there yet. */
  readonly empty: boolean;
}

/** Fields that both parsers, ours and the upstream's, must read alike. */
const LIMIT_FIELDS = ["max_tokens", "max_completion_tokens", "max_output_tokens"] as const;
const CALL_FIELDS = ["model", "stream", "stream_options", "n", ...LIMIT_FIELDS] as const;
const STREAM_FIELDS = ["include_usage"] as const;
type CallField = (typeof CALL_FIELDS)[number];

const MAX_ESCAPE_BYTES = 6;
const SHORTEST_KEY_BYTES = "n".length;
const LONGEST_KEY_BYTES = "max_completion_tokens".length * MAX_ESCAPE_BYTES;
const MAX_MODEL_BYTES = 1024;
const MAX_NUMBER_BYTES = 32;
/** About what a picture is charged as; the number of its bytes says little of it. */
const ATTACHMENT_TOKENS = 1000;

/** @throws DomainError `malformed_json`, or `invalid_request` with the field at fault. */
export function scanCall(body: readonly Buffer[]): CallScan {
  const reader = new ByteReader(body);
  reader.skipByteOrderMark();
  const found: Found = { model: null, stream: false, streamOptions: null, outputLimit: null, choices: 1 };
  const inside = readObject(reader, CALL_FIELDS, (field) => readField(reader, field, found));
  if (reader.peekAfterSpace() !== -1) throw malformed(reader, "something follows the object");
  const textTokens = Math.ceil((reader.position - reader.attachmentBytes) / BYTES_PER_TOKEN);
  return { ...found, ...inside, inputTokens: textTokens + reader.attachments * ATTACHMENT_TOKENS };
}

type Found = { -readonly [Name in "model" | "stream" | "streamOptions" | "outputLimit" | "choices"]: CallScan[Name] };

function readField(reader: ByteReader, field: CallField, found: Found): void {
  switch (field) {
    case "model":
      found.model = readModel(reader);
      return;
    case "stream":
      found.stream = readFlag(reader, "stream").value;
      return;
    case "stream_options":
      found.streamOptions = readStreamOptions(reader);
      return;
    case "n":
      found.choices = Math.max(1, readCount(reader) ?? 1);
      return;
    case "max_tokens":
    case "max_completion_tokens":
    case "max_output_tokens":
      // A caller that names two limits is held to the larger one: the upstream may follow either.
      found.outputLimit = larger(found.outputLimit, readCount(reader));
  }
}

/**
 * Moves past one object.
 * @param fields that may be given once at most.
 * @param read called before the value of each; moves past it.
 */
function readObject<F extends string>(reader: ByteReader, fields: readonly F[], read: (field: F) => void): Inside {
  if (!skipIf(reader, BYTE.openBrace)) throw malformed(reader, "it must be one object");
  const start = reader.position;
  if (skipIf(reader, BYTE.closeBrace)) return { start, empty: true };
  const seen: F[] = [];
  do {
    const key = readKey(reader);
    const field = fieldOf(fields, key);
    if (field === undefined) {
      skipValue(reader);
      continue;
    }
    if (seen.includes(field)) throw wrong(field, "is given twice; send it once.");
    seen.push(field);
    // Only the exact name is ours to read; a spelling such as "Model" is merely not allowed beside it.
    if (key === field) read(field);
    else skipValue(reader);
  } while (skipIf(reader, BYTE.comma));
  expect(reader, BYTE.closeBrace);
  return { start, empty: false };
}

/** @returns the decoded key, or null for one too short or too long to matter. */
function readKey(reader: ByteReader): string | null {
  reader.peekAfterSpace();
  const start = reader.position;
  skipString(reader);
  const end = reader.position;
  expect(reader, BYTE.colon);
  const length = end - start - 2;
  if (length < SHORTEST_KEY_BYTES || length > LONGEST_KEY_BYTES) return null;
  return decodeString(reader, { start, end });
}

/** Some servers match names without regard to case, Unicode's folds included (Go's JSON does): those spellings count too. */
function fieldOf<F extends string>(fields: readonly F[], key: string | null): F | undefined {
  if (key === null) return undefined;
  const folded = key.toUpperCase().toLowerCase();
  return fields.find((field) => field === folded);
}

function readSpan(reader: ByteReader): Span {
  reader.peekAfterSpace();
  const start = reader.position;
  skipValue(reader);
  return { start, end: reader.position };
}

/** The text of a short scalar, or "" for what is longer. */
function shortText(reader: ByteReader, { start, end }: Span, longest: number): string {
  return end - start <= longest ? reader.slice(start, end).toString("latin1") : "";
}

function readModel(reader: ByteReader): { name: string; span: Span } {
  const span = readSpan(reader);
  const isString = reader.slice(span.start, span.start + 1)[0] === BYTE.quote;
  if (!isString || span.end - span.start > MAX_MODEL_BYTES) {
    throw wrong("model", "must be a string of the form `<provider>/<model>`.");
  }
  return { name: decodeString(reader, span), span };
}

function readFlag(reader: ByteReader, name: string): Flag {
  const span = readSpan(reader);
  const text = shortText(reader, span, "false".length);
  if (text === "true") return { value: true, span };
  if (text === "false" || text === "null") return { value: false, span };
  throw wrong(name, "must be true or false.");
}

function readStreamOptions(reader: ByteReader): StreamOptions {
  if (reader.peekAfterSpace() === BYTE.openBrace) {
    const from = reader.position;
    let includeUsage: Flag | null = null;
    const inside = readObject(reader, STREAM_FIELDS, () => {
      includeUsage = readFlag(reader, "stream_options.include_usage");
    });
    return { ...inside, span: { start: from, end: reader.position }, isNull: false, includeUsage };
  }
  const span = readSpan(reader);
  if (shortText(reader, span, "null".length) !== "null") throw wrong("stream_options", "must be an object.");
  return { span, start: span.start, empty: true, isNull: true, includeUsage: null };
}

/** @returns null for what is no count; the upstream will say so. */
function readCount(reader: ByteReader): number | null {
  const text = shortText(reader, readSpan(reader), MAX_NUMBER_BYTES);
  const limit = /^\d/.test(text) ? Math.floor(Number(text)) : Number.NaN;
  return Number.isSafeInteger(limit) ? limit : null;
}

const larger = (a: number | null, b: number | null): number | null =>
  a === null || b === null ? (a ?? b) : Math.max(a, b);

function decodeString(reader: ByteReader, span: Span): string {
  const bytes = reader.slice(span.start, span.end);
  if (!bytes.includes("\\")) return bytes.toString("utf8", 1, bytes.length - 1);
  try {
    return String(JSON.parse(bytes.toString("utf8")));
  } catch {
    throw malformed(reader, "a string holds a wrong escape");
  }
}

function wrong(field: string, problem: string): DomainError {
  return new DomainError("invalid_request", `\`${field}\` ${problem}`, { param: field });
}
