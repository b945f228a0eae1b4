import { excessOf, type JsonStructure } from "./json-depth.ts";

export const MAX_JSON_DEPTH = 64;
export const MAX_JSON_VALUES = 1_000_000;

/** Of one character of a string. */
const MAX_UTF8_BYTES = 3;
const SHORT_JSON = 4096;
const OPEN_ARRAY = 0x5b;
const OPEN_OBJECT = 0x7b;

export interface JsonLimits extends Partial<JsonStructure> {
  readonly maxBytes?: number;
}

/** Thrown for JSON that is too expensive to parse. A SyntaxError, because most callers treat it like invalid JSON. */
export class JsonLimitError extends SyntaxError {
  override readonly name = "JsonLimitError";
}

/**
 * Parses JSON from outside the process, skipping a byte order mark.
 * @throws SyntaxError for invalid JSON; JsonLimitError, before building anything, if it is too long, too deep or has too many values.
 */
export function parseJson(json: string | Uint8Array, limits: JsonLimits = {}): unknown {
  checkJson(json, limits);
  return JSON.parse(typeof json === "string" ? json : new TextDecoder().decode(json));
}

/** For JSON that another parser reads. @throws JsonLimitError */
export function checkJson(json: string | Uint8Array, limits: JsonLimits = {}): void {
  const { maxBytes = Number.POSITIVE_INFINITY, maxDepth = MAX_JSON_DEPTH, maxValues = MAX_JSON_VALUES } = limits;
  // A character is at least one byte, so long text need not be encoded to be rejected.
  if (json.length > maxBytes) throw new JsonLimitError(`The JSON is longer than ${maxBytes} bytes.`);
  if (typeof json === "string" && json.length * MAX_UTF8_BYTES <= maxBytes && json.length <= maxValues) {
    if (opensAtMost(json, maxDepth)) return;
  }
  const bytes = typeof json === "string" ? new TextEncoder().encode(json) : json;
  if (bytes.length > maxBytes) throw new JsonLimitError(`The JSON is longer than ${maxBytes} bytes.`);
  const excess = excessOf(bytes, { maxDepth, maxValues });
  if (excess === "depth") throw new JsonLimitError(`The JSON nests deeper than ${maxDepth} levels.`);
  if (excess === "values") throw new JsonLimitError(`The JSON contains more than ${maxValues} values.`);
}

/** Fast path: with few opening brackets, the nesting cannot be too deep. */
function opensAtMost(json: string, max: number): boolean {
  if (json.length > SHORT_JSON) return false;
  let opened = 0;
  for (let at = 0; at < json.length; at++) {
    const code = json.charCodeAt(at);
    if ((code === OPEN_ARRAY || code === OPEN_OBJECT) && ++opened > max) return false;
  }
  return true;
}
