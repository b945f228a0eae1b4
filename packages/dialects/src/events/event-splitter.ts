import { GrowingBuffer } from "@fairlead/wire/growing-buffer";
import { firstEventEnd, isBetweenEvents, lastEventEnd, STREAM_START, type Tail, tailAfter } from "./event-boundary.ts";

/** Larger events are passed on in pieces, to limit the memory of each call. */
export const MAX_HELD_BYTES = 64 * 1024;

export interface EventSink {
  /** One or more complete events; the bytes are unchanged. */
  onEvents(bytes: Buffer): void;
  /** A piece of an event that is too long to buffer; the last piece ends it. */
  onPiece(bytes: Buffer, last: boolean): void;
}

/**
 * Splits an event stream at event boundaries, however it is chunked. Incomplete events are held back: if the upstream breaks off, a
 * client would fail on incomplete JSON instead of reading the error.
 */
export class EventSplitter {
  readonly #sink: EventSink;
  #tail: Tail = STREAM_START;
  readonly #held = new GrowingBuffer();
  #inPieces = false;

  constructor(sink: EventSink) {
    this.#sink = sink;
  }

  /** Whether the output so far ends between two events. */
  get isBetween(): boolean {
    return !this.#inPieces;
  }

  push(chunk: Buffer): void {
    if (this.#inPieces) this.#goOn(chunk);
    else this.#cut(chunk);
  }

  /** Bytes of an incomplete event. */
  takeRest(): Buffer {
    const rest = this.#held.bytes;
    this.#held.clear();
    return rest;
  }

  #cut(chunk: Buffer): void {
    const tail = tailAfter(this.#tail, chunk);
    const end = isBetweenEvents(tail) ? chunk.length : lastEventEnd(this.#tail, chunk);
    this.#tail = tail;
    if (end === 0) {
      this.#hold(chunk);
      return;
    }
    const whole = end === chunk.length ? chunk : chunk.subarray(0, end);
    if (this.#held.length === 0) this.#sink.onEvents(whole);
    else this.#sink.onEvents(Buffer.concat([this.takeRest(), whole]));
    if (end < chunk.length) this.#hold(chunk.subarray(end));
  }

  /** A copy, because a small piece would keep the whole of a large read in memory. */
  #hold(bytes: Buffer): void {
    if (this.#held.length + bytes.length <= MAX_HELD_BYTES) {
      this.#held.append(bytes);
      return;
    }
    this.#inPieces = true;
    this.#sink.onPiece(Buffer.concat([this.takeRest(), bytes]), false);
  }

  #goOn(chunk: Buffer): void {
    const end = firstEventEnd(this.#tail, chunk);
    if (end === 0) {
      this.#tail = tailAfter(this.#tail, chunk);
      this.#sink.onPiece(chunk, false);
      return;
    }
    this.#inPieces = false;
    this.#tail = tailAfter(this.#tail, chunk, end);
    this.#sink.onPiece(chunk.subarray(0, end), true);
    if (end < chunk.length) this.#cut(chunk.subarray(end));
  }
}

const LF = 0x0a;
const CR = 0x0d;

/** The end offset of each event in bytes that end between two. Extra empty lines belong to the event before them. */
export function eventEnds(bytes: Buffer): number[] {
  const ends: number[] = [];
  let lineStart = 0;
  let hasLines = false;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte !== LF && byte !== CR) continue;
    const isEmpty = at === lineStart;
    if (byte === CR && bytes[at + 1] === LF) at++;
    lineStart = at + 1;
    if (isEmpty && (hasLines || ends.length === 0)) ends.push(lineStart);
    else if (isEmpty) ends[ends.length - 1] = lineStart;
    hasLines = !isEmpty;
  }
  return ends;
}
