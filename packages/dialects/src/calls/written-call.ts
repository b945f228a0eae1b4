import type { JsonObject } from "../convert/wire.ts";
import { DIALECT_SPECS } from "../dialect-specs.ts";
import { isObject } from "../json/parse.ts";
import { noContent } from "./call-content.ts";
import { countValue, NO_COUNTS } from "./call-counts.ts";
import type { CallMembers, InputMember } from "./call-members.ts";
import {
  type CallScan,
  type FoundCall,
  type FoundInput,
  inputOf,
  isInput,
  type RoutingMember,
  STREAM_KEYS,
  type StreamOptions,
  wrong,
} from "./call-scan.ts";
import type { Dialect } from "./dialect.ts";
import { countMessages, countTools } from "./written-content.ts";

/** Writes the body of a call that this process makes and derives its scan result, so that the body need not be scanned. Pure. */

export interface WrittenCall {
  readonly bytes: Buffer;
  /** Equal to `scanCall` of the bytes in the same dialect. */
  readonly scan: CallScan;
}

const MODEL_KEY = '"model":';
const OPTIONS_KEY = '"stream_options":';
const USAGE_KEY = '"include_usage":';

/**
 * @param body parsed JSON without the model.
 * @throws DomainError `invalid_request` with the invalid field, as `scanCall` does.
 */
export function writeCall(model: string, body: JsonObject, dialect: Dialect): WrittenCall {
  const { members } = DIALECT_SPECS[dialect].request;
  const { model: _model, stream_options: options, ...rest } = body;
  const name = JSON.stringify(model);
  const start = 1 + MODEL_KEY.length;
  const span = { start, end: start + Buffer.byteLength(name) };
  const written = options === undefined ? null : writeOptions(options, span.end + 1 + OPTIONS_KEY.length);
  const found: FoundCall = {
    model: { name: model, span },
    stream: false,
    streamOptions: written?.options ?? null,
    counts: { ...NO_COUNTS },
  };
  const input: FoundInput = { ...noContent(), predictedBytes: 0, references: 0 };
  const seen = new Set(written === null ? ["model"] : ["model", "stream_options"]);
  readMembers(rest, { members, found, input, seen });
  const json = JSON.stringify(rest);
  const text = `{${MODEL_KEY}${name}${written?.text ?? ""}${json === "{}" ? "" : ","}${json.slice(1)}`;
  const bytes = Buffer.from(text);
  return { bytes, scan: { ...found, start: 1, empty: false, markBytes: 0, ...inputOf(input, bytes.length) } };
}

interface Reading {
  readonly members: CallMembers;
  readonly found: FoundCall;
  readonly input: FoundInput;
  /** Names of routing members present, in any spelling. */
  readonly seen: Set<string>;
}

function readMembers(body: JsonObject, { members, found, input, seen }: Reading): void {
  for (const [key, value] of Object.entries(body)) {
    const named = members.names.named(key);
    if (named === undefined) continue;
    const { name, exact } = named;
    const member = members.meaningOf(name);
    if (isInput(member)) {
      readInput(member, value, input);
      continue;
    }
    if (seen.has(name)) throw wrong(name, "must not be repeated.");
    seen.add(name);
    if (exact || member === "n" || member === "best_of") readField(member, value, found);
  }
}

function readField(member: RoutingMember | undefined, value: unknown, found: FoundCall): void {
  if (member === undefined || member === "model" || member === "stream_options") return;
  if (member === "stream") found.stream = flagOf(value, member);
  else countValue(value, { field: member, counts: found.counts });
}

function readInput(member: InputMember, value: unknown, input: FoundInput): void {
  switch (member) {
    case "messages":
      countMessages(value, input);
      return;
    case "tools":
      countTools(value, input);
      return;
    case "prediction":
      input.predictedBytes += Buffer.byteLength(JSON.stringify(value));
      return;
    case "search":
      if (isGiven(value)) input.hostedTools++;
      return;
    case "reference":
      if (isGiven(value)) input.references++;
  }
}

const isGiven = (value: unknown): boolean => value !== null && value !== false;

interface WrittenOptions {
  readonly text: string;
  readonly options: StreamOptions;
}

/** @param start of the value. */
function writeOptions(value: unknown, start: number): WrittenOptions {
  if (value === null) {
    const span = { start, end: start + "null".length };
    return { text: `,${OPTIONS_KEY}null`, options: { span, start, empty: true, isNull: true, includeUsage: null } };
  }
  if (!isObject(value)) throw wrong("stream_options", "must be an object.");
  const { include_usage: usage, ...rest } = value;
  const json = JSON.stringify({ include_usage: usage, ...rest });
  const span = { start, end: start + Buffer.byteLength(json) };
  const flag = start + 1 + USAGE_KEY.length;
  const includeUsage =
    usage === undefined
      ? null
      : {
          value: flagOf(usage, "stream_options.include_usage"),
          span: { start: flag, end: flag + JSON.stringify(usage).length },
        };
  if (Object.keys(value).filter((key) => STREAM_KEYS.named(key) !== undefined).length > 1) {
    throw wrong("include_usage", "must not be repeated.");
  }
  const empty = json === "{}";
  return { text: `,${OPTIONS_KEY}${json}`, options: { span, start: start + 1, empty, isNull: false, includeUsage } };
}

function flagOf(value: unknown, name: string): boolean {
  if (typeof value === "boolean" || value === null) return value === true;
  throw wrong(name, "must be true or false.");
}
