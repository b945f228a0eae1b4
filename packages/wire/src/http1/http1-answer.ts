import type { IncomingHttpHeaders } from "node:http";
import { GrowingBuffer } from "../growing-buffer.ts";
import {
  type Framing,
  framingOf,
  isField,
  MAX_FIELDS,
  MAX_LENGTH_DIGITS,
  MAX_LINE_BYTES,
  MalformedAnswer,
  type ResponseHead,
  readHead,
} from "./response-head.ts";

/**
 * Streaming parser of HTTP/1.1 responses (RFC 9112). Strict: ambiguous input is rejected. Linear in the bytes, however they are
 * split.
 */

export interface AnswerParts {
  /** Of the final response; informational responses are skipped. */
  onHeaders(status: number, headers: IncomingHttpHeaders): void;
  /** @returns false to pause until `resume`. */
  onData(chunk: Buffer): boolean;
  /** @param again whether the connection can be reused. */
  onEnd(again: boolean): void;
}

/** All heads before a body together, and all trailers together. */
const MAX_HEAD_BYTES = 65_536;
/** Maximum number of informational responses before the final one. */
const MAX_INFORMATIONAL = 16;

const HEAD_END = Buffer.from("\r\n\r\n");
const [LF, CR] = [0x0a, 0x0d];
/** Any number of `;name`, `;name=token` or `;name="text"` (RFC 9112 §7.1.1). */
const CHUNK_EXTENSIONS =
  /^(?:;[!#$%&'*+\-.^_`|~0-9A-Za-z]+(?:=(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+|"(?:[\t\x20\x21\x23-\x5b\x5d-\x7e\x80-\xff]|\\[\t\x20-\x7e\x80-\xff])*"))?)*$/;

type State = "none" | "head" | "length" | "chunk-head" | "chunk" | "chunk-end" | "trailers" | "until-close" | "end";

/** Parses consecutive responses on one connection. */
export class Http1Answer {
  readonly #parts: AnswerParts;
  #state: State = "none";
  #forHead = false;
  /** Remaining bytes of the body or chunk. */
  #left = 0;
  #again = false;
  /** An incomplete head or line. */
  readonly #partial = new GrowingBuffer();
  /** Bytes of it already searched for the end. */
  #searched = 0;
  /** Bytes of heads, then of trailers. */
  #headBytes = 0;
  /** Number of informational heads, then of trailers. */
  #headCount = 0;
  #isPaused = false;
  /** Received while paused; bytes before `#heldAt` are parsed. */
  #held: Buffer[] = [];
  #heldAt = 0;

  constructor(parts: AnswerParts) {
    this.#parts = parts;
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  /** Expects another response. @param forHead the request was HEAD, so there is no body whatever the headers say. */
  expect(forHead: boolean): void {
    this.#state = "head";
    this.#forHead = forHead;
    this.#isPaused = false;
    this.#partial.clear();
    this.#searched = 0;
    this.#headBytes = 0;
    this.#headCount = 0;
    this.#dropHeld();
  }

  /** Discards the rest. */
  stop(): void {
    this.#state = "none";
    this.#isPaused = false;
    this.#dropHeld();
  }

  /** @throws MalformedAnswer */
  push(bytes: Buffer): void {
    if (this.#isPaused) this.#held.push(bytes);
    else this.#read(bytes);
  }

  /** @throws MalformedAnswer */
  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    while (!this.#isPaused) {
      const piece = this.#held[this.#heldAt];
      if (piece === undefined || this.#state === "none") {
        this.#dropHeld();
        return;
      }
      this.#heldAt += 1;
      this.#read(piece);
    }
  }

  /** The connection closed, which also ends a response without a length. @returns whether the response was complete. */
  close(): boolean {
    if (this.#state !== "until-close") return false;
    this.#end(false);
    return true;
  }

  #dropHeld(): void {
    this.#heldAt = 0;
    if (this.#held.length > 0) this.#held = [];
  }

  #read(bytes: Buffer): void {
    let from = 0;
    const all = this.#partial.length > 0 ? this.#partial.append(bytes) : bytes;
    while (from < all.length || this.#state === "end") {
      if (this.#isPaused) {
        this.#holdFirst(all.subarray(from));
        return;
      }
      const next = this.#step(all, from);
      if (next === -1) {
        this.#holdPartial(all, from);
        return;
      }
      if (this.#state === "none") return;
      this.#searched = 0;
      if (this.#partial.length > 0) this.#partial.clear();
      from = next;
    }
  }

  #holdPartial(all: Buffer, from: number): void {
    const length = all.length - from;
    if (length > this.#maxPartial()) throw new MalformedAnswer("its head, or a line of it, is too long");
    if (this.#partial.length === 0) this.#partial.hold(from === 0 ? all : all.subarray(from));
    // Three of the four bytes that end a head may have arrived.
    this.#searched = Math.max(0, length - HEAD_END.length + 1);
  }

  #holdFirst(rest: Buffer): void {
    if (this.#heldAt === 0) this.#held.unshift(rest);
    else {
      this.#heldAt -= 1;
      this.#held[this.#heldAt] = rest;
    }
  }

  #maxPartial(): number {
    return this.#state === "head" ? MAX_HEAD_BYTES - this.#headBytes : MAX_LINE_BYTES;
  }

  /** @returns the offset to continue at; -1 if more bytes are needed. */
  #step(bytes: Buffer, from: number): number {
    switch (this.#state) {
      case "head":
        return this.#readHead(bytes, from);
      case "length":
      case "chunk":
        return this.#readData(bytes, from, Math.min(bytes.length, from + this.#left));
      case "until-close":
        return this.#readData(bytes, from, bytes.length);
      case "chunk-head":
        return this.#readChunkHead(bytes, from);
      case "chunk-end":
        if (bytes.length - from < 2) return -1;
        if (bytes[from] !== CR || bytes[from + 1] !== LF) throw new MalformedAnswer("a chunk is longer than it says");
        this.#state = "chunk-head";
        return from + 2;
      case "trailers":
        return this.#readTrailer(bytes, from);
      case "end":
        // Unexpected extra bytes: the connection cannot be reused.
        this.#end(this.#again && from === bytes.length && this.#heldAt === this.#held.length);
        return bytes.length;
      case "none":
        throw new MalformedAnswer("it says something that it was not asked for");
    }
  }

  #end(again: boolean): void {
    this.#state = "none";
    this.#parts.onEnd(again);
  }

  #readHead(bytes: Buffer, from: number): number {
    const end = bytes.indexOf(HEAD_END, from + this.#searched);
    if (end === -1) return -1;
    this.#count(end - from, MAX_INFORMATIONAL + 1);
    const head = readHead(bytes.toString("latin1", from, end));
    // We never request an upgrade.
    if (head.status === 101) throw new MalformedAnswer("it changes the protocol");
    const framing = framingOf(head);
    if (head.status >= 200) this.#begin(head, framing);
    else if (framing.closes) throw new MalformedAnswer("an informational response ends its connection");
    return end + HEAD_END.length;
  }

  /** @param most maximum number of heads or trailers */
  #count(bytes: number, most: number): void {
    this.#headBytes += bytes;
    this.#headCount += 1;
    if (this.#headBytes > MAX_HEAD_BYTES) throw new MalformedAnswer("its head is too long");
    if (this.#headCount > most) throw new MalformedAnswer("it has too many heads or trailers");
  }

  #begin({ status, headers }: ResponseHead, { length, closes }: Framing): void {
    if (this.#forHead || status === 204 || status === 304) this.#state = "end";
    else if (length === "chunked") this.#state = "chunk-head";
    else if (length === null) this.#state = "until-close";
    else {
      this.#left = length;
      this.#state = length === 0 ? "end" : "length";
    }
    this.#again = !closes && this.#state !== "until-close";
    this.#parts.onHeaders(status, headers);
  }

  #readData(bytes: Buffer, from: number, to: number): number {
    const chunk = from === 0 && to === bytes.length ? bytes : bytes.subarray(from, to);
    if (this.#state !== "until-close") {
      this.#left -= to - from;
      if (this.#left === 0) this.#state = this.#state === "chunk" ? "chunk-end" : "end";
    }
    // `stop` may have been called meanwhile.
    if (!this.#parts.onData(chunk) && this.#state !== "none") this.#isPaused = true;
    return to;
  }

  /** `<hex>[;extension]\r\n` */
  #readChunkHead(bytes: Buffer, from: number): number {
    let size = 0;
    let at = from;
    for (let digit = hexDigit(bytes[at]); digit !== -1; digit = hexDigit(bytes[at])) {
      size = size * 16 + digit;
      at += 1;
    }
    if (at - from > MAX_LENGTH_DIGITS) throw new MalformedAnswer("a chunk's length cannot be read");
    let next = at + 2;
    if (bytes[at] !== CR || bytes[at + 1] !== LF) {
      const end = this.#lineEnd(bytes, from);
      if (end === -1) return -1;
      if (!CHUNK_EXTENSIONS.test(bytes.toString("latin1", at, end)))
        throw new MalformedAnswer("a chunk's length cannot be read");
      next = end + 2;
    }
    if (at === from) throw new MalformedAnswer("a chunk's length cannot be read");
    this.#left = size;
    this.#state = size === 0 ? "trailers" : "chunk";
    this.#headBytes = 0;
    this.#headCount = 0;
    return next;
  }

  /** Checked for syntax only: no relayed response needs trailers. */
  #readTrailer(bytes: Buffer, from: number): number {
    const end = this.#lineEnd(bytes, from);
    if (end === -1) return -1;
    if (end === from) this.#state = "end";
    else {
      this.#count(end - from, MAX_FIELDS);
      if (!isField(bytes.toString("latin1", from, end))) throw new MalformedAnswer("a trailer cannot be read");
    }
    return end + 2;
  }

  /** @returns the end of the line that starts here, without the line break; -1 if more bytes are needed. */
  #lineEnd(bytes: Buffer, from: number): number {
    const end = bytes.indexOf(LF, from + this.#searched);
    if (end === -1) return -1;
    if (end - 1 - from > MAX_LINE_BYTES) throw new MalformedAnswer("a line of it is too long");
    if (end === from || bytes[end - 1] !== CR) throw new MalformedAnswer("a line of it does not end in CR LF");
    return end - 1;
  }
}

function hexDigit(byte: number | undefined): number {
  if (byte === undefined) return -1;
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const letter = byte | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}
