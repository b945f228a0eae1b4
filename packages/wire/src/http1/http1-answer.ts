import type { IncomingHttpHeaders } from "node:http";

/** Reads answers in HTTP/1.1 (RFC 9112) as their bytes come, strictly: what could be understood in two ways is refused. */

/** What an upstream said is no HTTP/1.1, or not unambiguously. */
export class MalformedAnswer extends Error {
  override readonly name = "MalformedAnswer";
}

export interface AnswerParts {
  /** Of the final answer; informational ones are left out. */
  onHeaders(status: number, headers: IncomingHttpHeaders): void;
  /** @returns false to be told nothing more until `resume`. */
  onData(chunk: Buffer): boolean;
  /** @param again whether the connection may carry one more request. */
  onEnd(again: boolean): void;
}

/** As much as Node takes of a request by default, four times. Of chunk lengths and trailers too. */
const MAX_HEAD_BYTES = 65_536;
/** More digits could not be counted exactly. */
const MAX_LENGTH_DIGITS = 13;

const HEAD_END = Buffer.from("\r\n\r\n");
const EMPTY: Buffer = Buffer.alloc(0);
const [TAB, LF, CR, SPACE, SEMICOLON] = [0x09, 0x0a, 0x0d, 0x20, 0x3b];

const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?$/;
const FIELD = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[\t ]*([\t\x20-\x7e\x80-\xff]*?)[\t ]*$/;

type State = "none" | "head" | "length" | "chunk-head" | "chunk" | "chunk-end" | "trailers" | "until-close" | "end";

/** One answer after the other on one connection. */
export class Http1Answer {
  readonly #parts: AnswerParts;
  #state: State = "none";
  #forHead = false;
  /** Of the body with a stated length, or of the chunk. */
  #left = 0;
  #again = false;
  /** The beginning of what can only be read whole. */
  #partial = EMPTY;
  #isPaused = false;
  /** Came while paused. */
  #held = EMPTY;

  constructor(parts: AnswerParts) {
    this.#parts = parts;
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  /** Another answer is due. @param forHead its request's method was HEAD: it has no body, whatever it says. */
  expect(forHead: boolean): void {
    this.#state = "head";
    this.#forHead = forHead;
    this.#isPaused = false;
    this.#partial = EMPTY;
    this.#held = EMPTY;
  }

  /** Nobody wants the rest. */
  stop(): void {
    this.#state = "none";
    this.#isPaused = false;
    this.#held = EMPTY;
  }

  /** @throws MalformedAnswer */
  push(bytes: Buffer): void {
    if (this.#isPaused) this.#held = joined(this.#held, bytes);
    else this.#read(bytes);
  }

  /** @throws MalformedAnswer */
  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    const held = this.#held;
    this.#held = EMPTY;
    this.#read(held);
  }

  /** The connection has ended, and with it an answer that states no length. @returns whether the answer was whole. */
  close(): boolean {
    if (this.#state !== "until-close") return false;
    this.#end(false);
    return true;
  }

  #read(bytes: Buffer): void {
    let from = 0;
    const all = this.#partial.length === 0 ? bytes : joined(this.#partial, bytes);
    this.#partial = EMPTY;
    while (from < all.length || this.#state === "end") {
      if (this.#isPaused) {
        this.#held = all.subarray(from);
        return;
      }
      const next = this.#step(all, from);
      if (next === -1) {
        if (all.length - from > MAX_HEAD_BYTES) throw new MalformedAnswer("its head is too long");
        this.#partial = all.subarray(from);
        return;
      }
      if (this.#state === "none") return;
      from = next;
    }
  }

  /** @returns where to go on; -1 where more has to come first. */
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
        // Bytes that nobody asked for: whatever they are, no answer of ours comes after them.
        this.#end(this.#again && from === bytes.length);
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
    const end = bytes.indexOf(HEAD_END, from);
    if (end === -1) return -1;
    if (end - from > MAX_HEAD_BYTES) throw new MalformedAnswer("its head is too long");
    const head = readHead(bytes.toString("latin1", from, end));
    if (head.status >= 200) this.#begin(head);
    // We never ask for another protocol.
    else if (head.status === 101) throw new MalformedAnswer("it changes the protocol");
    return end + HEAD_END.length;
  }

  #begin({ status, headers, minor }: Head): void {
    const connection = text(headers.connection).toLowerCase();
    const closes = minor === 0 ? !connection.includes("keep-alive") : connection.includes("close");
    const coding = headers["transfer-encoding"];
    const length = lengthOf(headers);
    if (this.#forHead || status === 204 || status === 304) this.#state = "end";
    else if (coding !== undefined) {
      if (text(coding).toLowerCase() !== "chunked") throw new MalformedAnswer("its transfer coding is not `chunked`");
      // RFC 9112 §6.1: whoever sends both may be smuggling.
      if (length !== null) throw new MalformedAnswer("it states a length and is chunked");
      this.#state = "chunk-head";
    } else if (length === null) this.#state = "until-close";
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
    // Meanwhile it may have been stopped.
    if (!this.#parts.onData(chunk) && this.#state !== "none") this.#isPaused = true;
    return to;
  }

  /** `<hex>[;extension]\r\n` */
  #readChunkHead(bytes: Buffer, from: number): number {
    const end = bytes.indexOf(LF, from);
    if (end === -1) return -1;
    let size = 0;
    let at = from;
    for (let digit = hexDigit(bytes[at]); digit !== -1; digit = hexDigit(bytes[at])) {
      size = size * 16 + digit;
      at += 1;
    }
    const isRead = at > from && at - from <= MAX_LENGTH_DIGITS && bytes[end - 1] === CR;
    const next = bytes[at];
    const endsThere = next === CR ? at === end - 1 : next === SEMICOLON || next === SPACE || next === TAB;
    if (!isRead || !endsThere) throw new MalformedAnswer("a chunk's length cannot be read");
    this.#left = size;
    this.#state = size === 0 ? "trailers" : "chunk";
    return end + 1;
  }

  /** Looked at for their form alone: nothing that we relay has any. */
  #readTrailer(bytes: Buffer, from: number): number {
    const end = bytes.indexOf(LF, from);
    if (end === -1) return -1;
    if (end === from || bytes[end - 1] !== CR) throw new MalformedAnswer("a trailer cannot be read");
    if (end - 1 === from) this.#state = "end";
    else if (!FIELD.test(bytes.toString("latin1", from, end - 1)))
      throw new MalformedAnswer("a trailer cannot be read");
    return end + 1;
  }
}

interface Head {
  readonly status: number;
  /** Of HTTP/1. */
  readonly minor: number;
  readonly headers: IncomingHttpHeaders;
}

function readHead(head: string): Head {
  const [first = "", ...fields] = head.split("\r\n");
  const status = STATUS_LINE.exec(first);
  if (status === null) throw new MalformedAnswer("it does not begin with a status line");
  const headers: Record<string, string | string[]> = Object.create(null) as Record<string, string | string[]>;
  for (const field of fields) {
    const parts = FIELD.exec(field);
    if (parts === null) throw new MalformedAnswer("a header cannot be read");
    const name = (parts[1] ?? "").toLowerCase();
    const value = parts[2] ?? "";
    const former = headers[name];
    headers[name] = former === undefined ? value : typeof former === "string" ? [former, value] : [...former, value];
  }
  return { status: Number(status[2]), minor: Number(status[1]), headers };
}

/** One that was sent several times counts as the list of its values (RFC 9110 §5.3). */
function text(header: string | readonly string[] | undefined): string {
  return header === undefined ? "" : typeof header === "string" ? header : header.join(", ");
}

function lengthOf(headers: IncomingHttpHeaders): number | null {
  const length = headers["content-length"];
  if (length === undefined) return null;
  if (length.length > MAX_LENGTH_DIGITS || !/^\d+$/.test(text(length)))
    throw new MalformedAnswer("its length cannot be read");
  return Number(length);
}

function hexDigit(byte: number | undefined): number {
  if (byte === undefined) return -1;
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const letter = byte | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}

function joined(former: Buffer, bytes: Buffer): Buffer {
  return former.length === 0 ? bytes : Buffer.concat([former, bytes]);
}
