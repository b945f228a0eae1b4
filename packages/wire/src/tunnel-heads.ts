import type { IncomingHttpHeaders } from "node:http";

/**
 * What stands before the body of a request, or of an answer, on a stream of the tunnel: its length in four bytes, big-endian, and
 * an object in JSON. Header texts are as Node gives them: each character one byte of what was said.
 */

/** What came is no head. */
export class HeadRefused extends Error {
  override readonly name = "HeadRefused";
}

export type RequestKind = "no-body" | "body" | "web-socket";

export interface RequestHead {
  readonly workload: string;
  readonly kind: RequestKind;
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
}

export interface AnswerHead {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
}

const LENGTH_BYTES = 4;
/** Many times what either HTTP server takes. */
const MAX_HEAD_BYTES = 1024 * 1024;
const NOTHING: Buffer = Buffer.alloc(0);
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9a-z-]+$/;
const NOT_IN_HEADER_TEXT = /[^\t\x20-\x7e\x80-\xff]/;

export function writeHead(head: RequestHead | AnswerHead): Buffer {
  const text = JSON.stringify(head);
  const bytes = Buffer.allocUnsafe(LENGTH_BYTES + Buffer.byteLength(text));
  bytes.writeUInt32BE(bytes.length - LENGTH_BYTES);
  bytes.write(text, LENGTH_BYTES);
  return bytes;
}

/** Finds the head in front of a body whose bytes come piece by piece. */
export class HeadReader<Head> {
  readonly #check: (value: unknown) => Head;
  /** Of the head, in a buffer that grows with it. */
  #partial = NOTHING;
  #bytes = 0;

  constructor(check: (value: unknown) => Head) {
    this.#check = check;
  }

  /** @returns null until the head is whole; then it, and what came of the body. @throws HeadRefused */
  push(chunk: Buffer): { readonly head: Head; readonly rest: Buffer } | null {
    const bytes = this.#bytes === 0 ? chunk : this.#gather(chunk);
    if (bytes.length < LENGTH_BYTES) return this.#wait(bytes);
    const end = LENGTH_BYTES + bytes.readUInt32BE();
    if (end > MAX_HEAD_BYTES) throw new HeadRefused("a head that is too long");
    if (bytes.length < end) return this.#wait(bytes);
    this.#partial = NOTHING;
    return { head: this.#check(parse(bytes.toString("utf8", LENGTH_BYTES, end))), rest: bytes.subarray(end) };
  }

  #wait(bytes: Buffer): null {
    if (this.#bytes === 0) this.#gather(bytes);
    return null;
  }

  /** @returns all that came so far */
  #gather(chunk: Buffer): Buffer {
    const length = this.#bytes + chunk.length;
    if (length > this.#partial.length) {
      const larger = Buffer.allocUnsafe(2 * length);
      this.#partial.copy(larger, 0, 0, this.#bytes);
      this.#partial = larger;
    }
    chunk.copy(this.#partial, this.#bytes);
    this.#bytes = length;
    return this.#partial.subarray(0, length);
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
export function answerHead(value: unknown): AnswerHead {
  const { status, headers } = objectOf(value);
  if (typeof status !== "number" || !Number.isInteger(status) || status < 200 || status > 999)
    throw new HeadRefused("a head that is not an answer's");
  return { status, headers: headersOf(headers) };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw new HeadRefused("a head that is not JSON", { cause: error });
  }
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new HeadRefused("a head that is not an object");
  return value as Readonly<Record<string, unknown>>;
}

/** As strict as HTTP/2: what is not refused here is sent on to callers and engines. */
function headersOf(value: unknown): IncomingHttpHeaders {
  const headers = objectOf(value);
  for (const name in headers) {
    const text = headers[name];
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
