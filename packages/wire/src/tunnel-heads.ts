import type { IncomingHttpHeaders } from "node:http";
import { GrowingBuffer } from "./growing-buffer.ts";

/**
 * The head before the body of a request or response on a tunnel stream: its length (4 bytes, big-endian), then a JSON object.
 * Header values are as in Node: one byte per character.
 */

/** The received bytes are not a valid head. */
export class HeadRefused extends Error {
  override readonly name: string = "HeadRefused";
}

/** The head exceeds the maximum size. */
export class HeadTooLarge extends HeadRefused {
  override readonly name = "HeadTooLarge";
}

export type RequestKind = "no-body" | "body" | "web-socket";

export interface RequestHead {
  readonly workload: string;
  readonly kind: RequestKind;
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
}

export interface TunnelAnswerHead {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
}

const LENGTH_BYTES = 4;
/** A 64 KiB head of HTTP/1.1 at most doubles as JSON. */
export const MAX_HEAD_BYTES = 144 * 1024;
const MAX_FIELDS = 300;
/** A head is an object that contains an object of strings and lists of strings. */
const MAX_DEPTH = 3;
/** Deep nesting is cheap to parse up to this size. */
const UNCHECKED_BYTES = 2048;
const [QUOTE, BACKSLASH, OPEN_LIST, CLOSE_LIST, OPEN, CLOSE] = [0x22, 0x5c, 0x5b, 0x5d, 0x7b, 0x7d];
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9a-z-]+$/;
const NOT_IN_HEADER_TEXT = /[^\t\x20-\x7e\x80-\xff]/;

/** @throws HeadTooLarge */
export function writeHead(head: RequestHead | TunnelAnswerHead): Buffer {
  const text = JSON.stringify(head);
  const bytes = Buffer.allocUnsafe(LENGTH_BYTES + Buffer.byteLength(text));
  if (bytes.length > MAX_HEAD_BYTES) throw new HeadTooLarge("a head that is too long");
  bytes.writeUInt32BE(bytes.length - LENGTH_BYTES);
  bytes.write(text, LENGTH_BYTES);
  return bytes;
}

/** Reads the head from a stream of chunks. */
export class HeadReader<Head> {
  readonly #check: (value: unknown) => Head;
  readonly #partial = new GrowingBuffer();

  constructor(check: (value: unknown) => Head) {
    this.#check = check;
  }

  /** @returns null until the head is complete; then the head and the first bytes of the body. @throws HeadRefused */
  push(chunk: Buffer): { readonly head: Head; readonly rest: Buffer } | null {
    const bytes = this.#partial.length === 0 ? chunk : this.#partial.append(chunk);
    if (bytes.length < LENGTH_BYTES) return this.#wait(bytes);
    const end = LENGTH_BYTES + bytes.readUInt32BE();
    if (end > MAX_HEAD_BYTES) throw new HeadTooLarge("a head that is too long");
    if (bytes.length < end) return this.#wait(bytes);
    this.#partial.clear();
    return { head: this.#check(parse(bytes.subarray(LENGTH_BYTES, end))), rest: bytes.subarray(end) };
  }

  #wait(bytes: Buffer): null {
    // Copied, because the chunk may be a small part of a large read.
    if (this.#partial.length === 0) this.#partial.append(bytes);
    return null;
  }
}

/** @throws HeadRefused */
export function requestHead(value: unknown): RequestHead {
  const { workload, kind, method, path, headers } = objectOf(value);
  if (typeof workload !== "string" || typeof method !== "string" || typeof path !== "string" || !isKind(kind))
    throw new HeadRefused("a head that is not a request's");
  return { workload, kind, method, path, headers: headersOf(headers) };
}

/** @throws HeadRefused */
export function answerHead(value: unknown): TunnelAnswerHead {
  const { status, headers } = objectOf(value);
  if (typeof status !== "number" || !Number.isInteger(status) || status < 200 || status > 999)
    throw new HeadRefused("not the head of a response");
  return { status, headers: headersOf(headers) };
}

function parse(bytes: Buffer): unknown {
  if (bytes.length > UNCHECKED_BYTES && !isShallow(bytes)) throw new HeadRefused("a head that is nested");
  try {
    return JSON.parse(bytes.toString()) as unknown;
  } catch (error) {
    throw new HeadRefused("a head that is not JSON", { cause: error });
  }
}

/** Checked before parsing, because nesting costs a parser far more than its bytes. */
function isShallow(bytes: Buffer): boolean {
  let depth = 0;
  let isInText = false;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (isInText) {
      if (byte === BACKSLASH) at += 1;
      else if (byte === QUOTE) isInText = false;
    } else if (byte === QUOTE) isInText = true;
    else if (byte === OPEN || byte === OPEN_LIST) depth += 1;
    else if (byte === CLOSE || byte === CLOSE_LIST) depth -= 1;
    if (depth > MAX_DEPTH) return false;
  }
  return true;
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new HeadRefused("a head that is not an object");
  return value as Readonly<Record<string, unknown>>;
}

/** As strict as HTTP/2, because accepted headers are forwarded to clients and engines. */
function headersOf(value: unknown): IncomingHttpHeaders {
  const headers = objectOf(value);
  let fields = 0;
  for (const name in headers) {
    const text = headers[name];
    fields += name === "set-cookie" && Array.isArray(text) ? text.length : 1;
    if (fields > MAX_FIELDS) throw new HeadTooLarge("a head with too many headers");
    const isText = name === "set-cookie" && Array.isArray(text) ? text.every(isHeaderText) : isHeaderText(text);
    if (!isText || !HEADER_NAME.test(name) || name === "__proto__") throw new HeadRefused("a malformed header");
  }
  return headers as IncomingHttpHeaders;
}

function isHeaderText(value: unknown): value is string {
  return typeof value === "string" && !NOT_IN_HEADER_TEXT.test(value);
}

function isKind(value: unknown): value is RequestKind {
  return value === "no-body" || value === "body" || value === "web-socket";
}
