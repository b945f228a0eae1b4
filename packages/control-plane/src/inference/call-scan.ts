import { DomainError } from "@fairlead/protocol/errors";
import { ByteReader } from "./byte-reader.ts";
import { BYTE, expect, malformed, skipIf, skipString, skipValue } from "./json-skip.ts";

/** Reads what routing needs out of a call's body in one pass over its bytes; nothing is parsed or copied (design §8, §13). */

/** Where a value stands in the body: byte offsets, the end exclusive. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

export interface CallScan {
  /** Null where the body names no model. */
  readonly model: { readonly name: string; readonly span: Span } | null;
  readonly stream: boolean;
}

/** Fields that both parsers, ours and the upstream's, must read alike. */
const ROUTING_FIELDS = ["model", "stream"] as const;
type RoutingField = (typeof ROUTING_FIELDS)[number];

const MAX_ESCAPE_BYTES = 6;
const SHORTEST_KEY_BYTES = "model".length;
const LONGEST_KEY_BYTES = "stream".length * MAX_ESCAPE_BYTES;
const MAX_MODEL_BYTES = 1024;

/** @throws DomainError `malformed_json`, or `invalid_request` with the field at fault. */
export function scanCall(body: readonly Buffer[]): CallScan {
  const reader = new ByteReader(body);
  const fields = readTopLevel(reader);
  if (reader.peekAfterSpace() !== -1) throw malformed(reader, "something follows the object");
  return { model: fields.model ?? null, stream: fields.stream ?? false };
}

interface Found {
  model?: { name: string; span: Span };
  stream?: boolean;
}

function readTopLevel(reader: ByteReader): Found {
  if (!skipIf(reader, BYTE.openBrace)) throw malformed(reader, "it must be one object");
  const found: Found = {};
  const seen = new Set<RoutingField>();
  if (skipIf(reader, BYTE.closeBrace)) return found;
  do {
    const key = readKey(reader);
    const field = routingFieldOf(key);
    if (field === null) {
      skipValue(reader);
      continue;
    }
    if (seen.has(field)) throw twice(field);
    seen.add(field);
    const span = readSpan(reader);
    // Only the exact name is ours to read; a spelling such as "Model" is merely not allowed beside it.
    if (key === "model") found.model = { name: modelName(reader, span), span };
    else if (key === "stream") found.stream = streamFlag(reader, span);
  } while (skipIf(reader, BYTE.comma));
  expect(reader, BYTE.closeBrace);
  return found;
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
function routingFieldOf(key: string | null): RoutingField | null {
  if (key === null) return null;
  const folded = key.toUpperCase().toLowerCase();
  return ROUTING_FIELDS.find((field) => field === folded) ?? null;
}

function readSpan(reader: ByteReader): Span {
  reader.peekAfterSpace();
  const start = reader.position;
  skipValue(reader);
  return { start, end: reader.position };
}

function modelName(reader: ByteReader, span: Span): string {
  const isString = reader.slice(span.start, span.start + 1)[0] === BYTE.quote;
  if (!isString || span.end - span.start > MAX_MODEL_BYTES) {
    throw new DomainError("invalid_request", "`model` must be a string of the form `<provider>/<model>`.", {
      param: "model",
    });
  }
  return decodeString(reader, span);
}

function streamFlag(reader: ByteReader, span: Span): boolean {
  const text = span.end - span.start <= "false".length ? reader.slice(span.start, span.end).toString("latin1") : "";
  if (text === "true") return true;
  if (text === "false" || text === "null") return false;
  throw new DomainError("invalid_request", "`stream` must be true or false.", { param: "stream" });
}

function decodeString(reader: ByteReader, span: Span): string {
  const bytes = reader.slice(span.start, span.end);
  if (!bytes.includes("\\")) return bytes.toString("utf8", 1, bytes.length - 1);
  try {
    return String(JSON.parse(bytes.toString("utf8")));
  } catch {
    throw malformed(reader, "a string holds a wrong escape");
  }
}

function twice(field: RoutingField): DomainError {
  return new DomainError("invalid_request", `\`${field}\` is given twice; send it once.`, { param: field });
}
