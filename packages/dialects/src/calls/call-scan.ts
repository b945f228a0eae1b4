import { DomainError } from "@fairlead/protocol/errors";
import { DIALECT_SPECS } from "../dialect-specs.ts";
import { ByteReader } from "../json/byte-reader.ts";
import { BYTE, expect, malformed, skipIf, skipValue } from "../json/json-skip.ts";
import { decodeString, KeyNames, readKey } from "../json/key-names.ts";
import type { Span } from "../json/splice.ts";
import { type CallContent, noContent, readMessages, readTools } from "./call-content.ts";
import { type CallCounts, NO_COUNTS, readCount } from "./call-counts.ts";
import type { CallMember, InputMember } from "./call-members.ts";
import type { Dialect } from "./dialect.ts";
import { BYTES_PER_TOKEN } from "./token-usage.ts";

/** Reads what routing needs from a body in one pass over its bytes, without parsing or copying. */

export interface CallScan extends Inside {
  /** Null if the body has no such field. */
  readonly model: NamedModel | null;
  /** Length of a byte order mark. */
  readonly markBytes: number;
  readonly stream: boolean;
  readonly streamOptions: StreamOptions | null;
  /** The requested limits and numbers of choices. */
  readonly counts: CallCounts;
  readonly input: CallInput;
  /** An estimate, needed before the call. */
  readonly inputTokens: number;
}

export interface NamedModel {
  /** Null for `null`, which some SDKs send for absent. */
  readonly name: string | null;
  readonly span: Span;
}

/** Input that a model may have to read. */
export interface CallInput extends CallContent {
  /** Of the whole body. */
  readonly bytes: number;
  /** Of predicted output: wrong predictions are charged as output. */
  readonly predictedBytes: number;
  /** Fields that refer to data stored at the upstream. */
  readonly references: number;
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

/** Where a member can be inserted into an object. */
interface Inside {
  /** After the opening brace. */
  readonly start: number;
  /** Whether the object is empty. */
  readonly empty: boolean;
}

export const STREAM_KEYS = new KeyNames(["include_usage"]);

const MAX_MODEL_BYTES = 1024;

/** @throws DomainError `malformed_json`, or `invalid_request` with the field at fault. */
export function scanCall(body: readonly Buffer[], dialect: Dialect): CallScan {
  const { members } = DIALECT_SPECS[dialect].request;
  const reader = new ByteReader(body);
  reader.skipByteOrderMark();
  const markBytes = reader.position;
  const found: FoundCall = { model: null, stream: false, streamOptions: null, counts: { ...NO_COUNTS } };
  const input: FoundInput = { ...noContent(), predictedBytes: 0, references: 0 };
  const inside = readObject(reader, members.names, {
    once: (name) => !isInput(members.meaningOf(name)),
    read: (name, exact) => {
      const member = members.meaningOf(name);
      if (isInput(member)) readInput(reader, member, input);
      else if (exact) readField(reader, member, found);
      else readVariant(reader, member, found);
    },
  });
  if (reader.peekAfterSpace() !== -1) throw malformed(reader, "unexpected data after the object");
  const bytes = reader.position;
  return { ...found, ...inside, markBytes, ...inputOf(input, bytes) };
}

/** @param bytes of the whole body. */
export function inputOf(input: FoundInput, bytes: number): Pick<CallScan, "input" | "inputTokens"> {
  const inputTokens = Math.ceil((bytes - input.attachedBytes) / BYTES_PER_TOKEN) + input.attachmentTokens;
  return { input: { ...input, bytes }, inputTokens };
}

export type FoundCall = { -readonly [Name in "model" | "stream" | "streamOptions"]: CallScan[Name] } & {
  readonly counts: { -readonly [Name in keyof CallCounts]: CallCounts[Name] };
};
export type FoundInput = { -readonly [Name in Exclude<keyof CallInput, "bytes">]: CallInput[Name] };
/** A member that our parser and the upstream's must read alike. */
export type RoutingMember = Exclude<CallMember, InputMember>;

const inputMembers: ReadonlySet<CallMember | undefined> = new Set<InputMember>([
  "messages",
  "tools",
  "prediction",
  "reference",
  "search",
]);
export const isInput = (member: CallMember | undefined): member is InputMember => inputMembers.has(member);

function readField(reader: ByteReader, member: RoutingMember | undefined, found: FoundCall): void {
  if (member === undefined) skipValue(reader);
  else if (member === "model") found.model = readModel(reader);
  else if (member === "stream") found.stream = readFlag(reader, "stream").value;
  else if (member === "stream_options") found.streamOptions = readStreamOptions(reader);
  else readCount(reader, readSpan(reader), { field: member, counts: found.counts });
}

/** A spelling such as "N" is not ours to read, but a lenient upstream may take it for more answers. It never lowers a limit. */
function readVariant(reader: ByteReader, member: RoutingMember | undefined, { counts }: FoundCall): void {
  if (member === "n" || member === "best_of") readCount(reader, readSpan(reader), { field: member, counts });
  else skipValue(reader);
}

function readInput(reader: ByteReader, member: InputMember, input: FoundInput): void {
  switch (member) {
    case "messages":
      readMessages(reader, input);
      return;
    case "tools":
      readTools(reader, input);
      return;
    case "prediction": {
      const { start, end } = readSpan(reader);
      input.predictedBytes += end - start;
      return;
    }
    case "search":
      if (isGiven(reader)) input.hostedTools++;
      return;
    case "reference":
      if (isGiven(reader)) input.references++;
  }
}

/** Skips a value. @returns whether it requests something. */
function isGiven(reader: ByteReader): boolean {
  const first = reader.peekAfterSpace();
  skipValue(reader);
  return first !== NULL_START && first !== FALSE_START;
}

/** First bytes of the only literals that begin with them. */
const NULL_START = 0x6e;
const FALSE_START = 0x66;

interface Members<F extends string> {
  /** Whether the field must not be repeated. */
  readonly once: (field: F) => boolean;
  /** Called before a value; skips it. @param exact false for a spelling such as "Model". */
  readonly read: (field: F, exact: boolean) => void;
}

/** Skips one object. */
function readObject<F extends string>(reader: ByteReader, keys: KeyNames<F>, { once, read }: Members<F>): Inside {
  if (!skipIf(reader, BYTE.openBrace)) throw malformed(reader, "it must be an object");
  const start = reader.position;
  if (skipIf(reader, BYTE.closeBrace)) return { start, empty: true };
  const seen: F[] = [];
  do {
    const found = readKey(reader, keys);
    if (found === undefined) {
      skipValue(reader);
      continue;
    }
    const { name, exact } = found;
    if (once(name)) {
      if (seen.includes(name)) throw wrong(name, "must not be repeated.");
      seen.push(name);
    }
    read(name, exact);
  } while (skipIf(reader, BYTE.comma));
  expect(reader, BYTE.closeBrace);
  return { start, empty: false };
}

function readSpan(reader: ByteReader): Span {
  reader.peekAfterSpace();
  const start = reader.position;
  skipValue(reader);
  return { start, end: reader.position };
}

/** The text of a short scalar, or "" if it is longer. */
function shortText(reader: ByteReader, { start, end }: Span, longest: number): string {
  return end - start <= longest ? reader.slice(start, end).toString("latin1") : "";
}

function readModel(reader: ByteReader): NamedModel {
  const span = readSpan(reader);
  if (shortText(reader, span, "null".length) === "null") return { name: null, span };
  const isString = reader.slice(span.start, span.start + 1)[0] === BYTE.quote;
  if (!isString || span.end - span.start > MAX_MODEL_BYTES) {
    throw wrong("model", "must be a string of the form `<provider>/<model>`.");
  }
  const name = decodeString(reader, span);
  if (name === "") throw wrong("model", "must not be empty. Omit it to use the default model.");
  return { name, span };
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
    const inside = readObject(reader, STREAM_KEYS, {
      once: () => true,
      read: (_field, exact) => {
        // Only the exact name counts; other spellings are only rejected next to it.
        if (exact) includeUsage = readFlag(reader, "stream_options.include_usage");
        else skipValue(reader);
      },
    });
    return { ...inside, span: { start: from, end: reader.position }, isNull: false, includeUsage };
  }
  const span = readSpan(reader);
  if (shortText(reader, span, "null".length) !== "null") throw wrong("stream_options", "must be an object.");
  return { span, start: span.start, empty: true, isNull: true, includeUsage: null };
}

export function wrong(field: string, problem: string): DomainError {
  return new DomainError("invalid_request", `\`${field}\` ${problem}`, { param: field });
}
