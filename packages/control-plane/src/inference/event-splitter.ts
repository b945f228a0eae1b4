import { firstEventEnd, isBetweenEvents, lastEventEnd, STREAM_START, type Tail, tailAfter } from "./event-boundary.ts";

/** An event beyond this size is passed on in pieces: what is held back for one call has to stay small. */
export const MAX_HELD_BYTES = 64 * 1024;

export interface EventSink {
  /** One event or several, each of them whole. The bytes are as they came. */
  onEvents(bytes: Buffer): void;
  /** A piece of one event that is too long to be held; the last piece ends it. */
  onPiece(bytes: Buffer, last: boolean): void;
}

/**
 * Cuts an event stream, in whatever pieces it comes, where its events end. Half an event is held back: should the upstream
 * break off there, a client would fail over its half JSON instead of reading what happened.
 */
export class EventSplitter {
  readonly #sink: EventSink;
  #tail: Tail = STREAM_START;
  #held: Buffer[] = [];
  #heldBytes = 0;
  #inPieces = false;

  constructor(sink: EventSink) {
    this.#sink = sink;
  }

  /** Whether all that was handed out ends between two events. */
  get isBetween(): boolean {
    return !this.#inPieces;
  }

  push(chunk: Buffer): void {
    if (this.#inPieces) this.#goOn(chunk);
    else this.#cut(chunk);
  }

  /** What no event end came for. */
  takeRest(): Buffer {
    const rest = Buffer.concat(this.#held, this.#heldBytes);
    this.#held = [];
    this.#heldBytes = 0;
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
    if (this.#heldBytes === 0) this.#sink.onEvents(whole);
    else this.#sink.onEvents(Buffer.concat([this.takeRest(), whole]));
    if (end < chunk.length) this.#hold(chunk.subarray(end));
  }

  /** A copy, since a small piece would keep the whole of a large read in memory. */
  #hold(bytes: Buffer): void {
    if (this.#heldBytes + bytes.length <= MAX_HELD_BYTES) {
      this.#held.push(Buffer.from(bytes));
      this.#heldBytes += bytes.length;
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

/** The events of bytes that end between two: where each of them ends. */
export function eventEnds(bytes: Buffer): number[] {
  const ends: number[] = [];
  let lineStart = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte !== LF && byte !== CR) continue;
    const isEmpty = at === lineStart;
    if (byte === CR && bytes[at + 1] === LF) at++;
    lineStart = at + 1;
    if (isEmpty) ends.push(lineStart);
  }
  return ends;
}
