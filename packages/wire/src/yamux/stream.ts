import { FRAME_FLAG } from "./frames.ts";
import { HeldBytes } from "./held-bytes.ts";

/** Receives a stream's events. Nothing is called after `onClose`. */
export interface YamuxStreamHandler {
  /** @returns false to pause until `resume`. */
  onData(chunk: Buffer): boolean;
  /** The other side has closed its direction. */
  onEnd(): void;
  /** Written bytes were sent; `write` may continue. */
  onDrain(): void;
  /** @param failure null if both directions ended, or if this side reset the stream */
  onClose(failure: Error | null): void;
}

/** The part of a session that a stream needs. */
export interface YamuxStreamSession {
  readonly isCongested: boolean;
  sendData(streamId: number, flags: number, payload: Buffer): void;
  sendWindow(streamId: number, flags: number, bytes: number): void;
  /** @throws YamuxViolation if the other side exceeds its window */
  violated(reason: string): never;
  /** Calls `onWritable` once the connection has sent its queue. */
  whenWritable(stream: YamuxStream): void;
  forget(stream: YamuxStream): void;
  /** A useless frame arrived. @throws FrameFlood if there are too many */
  onUseless(): void;
  /**
   * @param bytes change in the bytes that wait for this stream's reader; may be negative. @returns whether the session has room for
   * them
   */
  hold(bytes: number): boolean;
}

/** Initial window of every stream, in both directions. */
export const FIRST_WINDOW_BYTES = 256 * 1024;
/** A window update is sent once at least this many bytes are due; a few extra ones open a stream. */
const BYTES_PER_UPDATE = 64 * 1024;
const FREE_UPDATES = 4;
const MAX_WINDOW_BYTES = 0xffff_ffff;
const NOTHING: Buffer = Buffer.alloc(0);

/** The reader is too far behind, and the session's limit of unread bytes is reached. */
export class HeldTooMuch extends Error {
  override readonly name = "HeldTooMuch";
}

/** A bidirectional byte stream. Each direction is limited by its reader's speed. */
export class YamuxStream {
  readonly id: number;
  readonly #session: YamuxStreamSession;
  /** Undefined before `handle` and after the end. */
  #handler: YamuxStreamHandler | undefined;
  /** Sent with the next frame: opens or accepts the stream. */
  #firstFlag: number;
  /** Whether data received before a reset by the other side is still delivered. */
  readonly #tellsAfterReset: boolean;

  // Sending.
  #credit = FIRST_WINDOW_BYTES;
  /** Window updates that sent data can explain. */
  #updatesDue = FREE_UPDATES;
  #queue: Buffer[] = [];
  #isEnding = false;
  #isEndSent = false;
  #resetsWhenSent = false;
  #wantsDrain = false;

  // Receiving.
  /** Bytes that the other side may still send. */
  #window = FIRST_WINDOW_BYTES;
  #fullWindow = FIRST_WINDOW_BYTES;
  readonly #held = new HeldBytes();
  #isPaused = true;
  #isEndReceived = false;
  #isEndTold = false;
  #failure: Error | null = null;
  #isClosed = false;

  /** @param opensIt whether this side opens the stream */
  constructor(id: number, session: YamuxStreamSession, opensIt: boolean) {
    this.id = id;
    this.#session = session;
    this.#firstFlag = opensIt ? FRAME_FLAG.syn : FRAME_FLAG.ack;
    this.#tellsAfterReset = opensIt;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Starts delivery. Call it once. @param windowBytes limit of unread bytes, at least the initial window */
  handle(handler: YamuxStreamHandler, windowBytes = FIRST_WINDOW_BYTES): void {
    if (this.#isClosed) return;
    this.#handler = handler;
    this.#fullWindow = windowBytes;
    this.resume();
  }

  /** @returns false when the caller should wait for `onDrain`. Does nothing after the end. */
  write(chunk: Buffer): boolean {
    if (this.#isClosed || this.#isEnding || chunk.length === 0) return true;
    if (this.#queue.length > 0 || chunk.length > this.#credit || this.#session.isCongested) this.#queue.push(chunk);
    else this.#send(chunk, 0);
    if (this.#queue.length > 0) this.#pump();
    if (this.#queue.length === 0 && this.#credit > 0 && !this.#session.isCongested) return true;
    this.#wantsDrain = true;
    if (this.#session.isCongested) this.#session.whenWritable(this);
    return false;
  }

  /** Closes this side's direction. @param last sent in one frame with the end */
  end(last = NOTHING): void {
    if (this.#isClosed || this.#isEnding) return;
    this.#isEnding = true;
    this.#queue.push(last);
    this.#pump();
  }

  /** Resumes delivery. */
  resume(): void {
    this.#isPaused = false;
    if (this.#handler !== undefined) this.#grant();
    while (!this.#isPaused && this.#handler !== undefined) {
      const chunk = this.#held.shift();
      if (chunk === undefined) break;
      this.#session.hold(-chunk.length);
      this.#tell(chunk);
    }
    this.#tellEnd();
  }

  /** Ends both directions immediately. Does nothing if both are already ended. */
  reset(): void {
    if (this.#isClosed) return;
    this.#sendReset();
    this.#close(null);
  }

  /** Resets the stream once written bytes are sent. */
  resetWhenSent(): void {
    if (this.#isClosed || this.#isEnding) return;
    if (this.#queue.length > 0) {
      this.#resetsWhenSent = true;
      return;
    }
    this.#sendReset();
    this.#close(null);
  }

  /** For the session: a window update arrived. */
  onWindow(bytes: number): void {
    if (this.#updatesDue >= 1) this.#updatesDue -= 1;
    else this.#session.onUseless();
    if (bytes === 0) return;
    this.#credit += bytes;
    if (this.#credit > MAX_WINDOW_BYTES) this.#session.violated("a window grows beyond its measure");
    if (!this.#session.isCongested) this.onWritable();
    else if (this.#wantsDrain || this.#queue.length > 0) this.#session.whenWritable(this);
  }

  /** For the session: the connection can send more. */
  onWritable(): void {
    this.#pump();
    if (!this.#wantsDrain || this.#queue.length > 0 || this.#credit === 0 || this.#isClosed) return;
    this.#wantsDrain = false;
    this.#handler?.onDrain();
  }

  /** For the session. */
  onPayload(chunk: Buffer): void {
    this.#window -= chunk.length;
    if (this.#window < 0) this.#session.violated("more was sent than there was room for");
    if (this.#isEndReceived || this.#failure !== null) this.#session.violated("something was said after the end");
    if (this.#isClosed) return;
    if (this.#isPaused) this.#hold(chunk);
    else this.#tell(chunk);
  }

  /** For the session: the other side has closed its direction. */
  onFin(): void {
    if (this.#isEndReceived) this.#session.onUseless();
    this.#isEndReceived = true;
    this.#tellEnd();
  }

  /** For the session: the other side reset the stream, or the connection was lost. */
  onLost(failure: Error, isReset: boolean): void {
    if (this.#isClosed) return;
    if (isReset && this.#tellsAfterReset && this.#held.length > 0) {
      // The reader has not taken the earlier data yet.
      this.#failure = failure;
      this.#queue = [];
      this.#isEnding = true;
    } else this.#close(failure);
  }

  #hold(chunk: Buffer): void {
    this.#held.push(chunk);
    if (this.#session.hold(chunk.length)) return;
    this.#sendReset();
    this.#close(new HeldTooMuch("too much waits for slow readers"));
  }

  #tell(chunk: Buffer): void {
    if (this.#handler?.onData(chunk) === false) this.#isPaused = true;
    else this.#grant();
  }

  /** Extends the window once half of it is used. */
  #grant(): void {
    if (this.#isEndReceived || this.#isClosed || this.#failure !== null) return;
    const room = this.#fullWindow - this.#window - this.#held.length;
    if (room < this.#fullWindow / 2) return;
    this.#window += room;
    this.#session.sendWindow(this.id, this.#takeFirstFlag(), room);
  }

  #tellEnd(): void {
    if (this.#handler === undefined || this.#held.length > 0) return;
    if (this.#failure !== null) {
      this.#close(this.#failure);
      return;
    }
    // A reader that paused after the last bytes gets the end immediately: there is nothing to hold back.
    if (!this.#isEndReceived || this.#isEndTold) return;
    this.#isEndTold = true;
    this.#handler.onEnd();
    this.#closeWhenOver();
  }

  #pump(): void {
    for (let chunk = this.#queue[0]; chunk !== undefined; chunk = this.#queue[0]) {
      if (this.#session.isCongested) {
        this.#session.whenWritable(this);
        return;
      }
      const isLast = this.#isEnding && this.#queue.length === 1;
      if (chunk.length > this.#credit) {
        if (this.#credit === 0) return;
        this.#queue[0] = chunk.subarray(this.#credit);
        this.#send(chunk.subarray(0, this.#credit), 0);
        return;
      }
      this.#queue.shift();
      this.#send(chunk, isLast ? FRAME_FLAG.fin : 0);
      this.#isEndSent ||= isLast;
    }
    if (this.#resetsWhenSent) {
      this.#resetsWhenSent = false;
      this.resetWhenSent();
    }
    if (this.#isEndSent) this.#closeWhenOver();
  }

  #send(chunk: Buffer, flags: number): void {
    this.#credit -= chunk.length;
    this.#updatesDue += chunk.length / BYTES_PER_UPDATE;
    this.#session.sendData(this.id, flags | this.#takeFirstFlag(), chunk);
  }

  #sendReset(): void {
    // For the other side, the stream has ended or never began.
    const isOver = this.#failure !== null || (this.#isEndSent && this.#isEndReceived);
    if (isOver || this.#firstFlag === FRAME_FLAG.syn) return;
    this.#session.sendWindow(this.id, FRAME_FLAG.rst | this.#takeFirstFlag(), 0);
  }

  #takeFirstFlag(): number {
    const flag = this.#firstFlag;
    this.#firstFlag = 0;
    return flag;
  }

  #closeWhenOver(): void {
    if (this.#isEndSent && this.#isEndTold) this.#close(null);
  }

  #close(failure: Error | null): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const handler = this.#handler;
    this.#handler = undefined;
    this.#queue = [];
    this.#session.hold(-this.#held.length);
    this.#held.clear();
    this.#session.forget(this);
    handler?.onClose(failure);
  }
}
