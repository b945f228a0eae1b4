import { FRAME_FLAG } from "./frames.ts";
import { HeldBytes } from "./held-bytes.ts";

/** What a stream is told. Nothing after `onClose`. */
export interface YamuxStreamHandler {
  /** @returns false to be told nothing more until `resume`. */
  onData(chunk: Buffer): boolean;
  /** The other side has said all. */
  onEnd(): void;
  /** What was written has left: `write` may go on. */
  onDrain(): void;
  /** @param failure null where both sides have said all, or where this side has reset the stream */
  onClose(failure: Error | null): void;
}

/** What a stream needs of its session. */
export interface YamuxStreamSession {
  readonly isCongested: boolean;
  sendData(streamId: number, flags: number, payload: Buffer): void;
  sendWindow(streamId: number, flags: number, bytes: number): void;
  /** @throws YamuxViolation where the other side sends more than it may */
  violated(reason: string): never;
  /** Calls `onWritable` once the connection has sent what waits in it. */
  whenWritable(stream: YamuxStream): void;
  forget(streamId: number): void;
}

/** Where a session's streams begin, in both directions. */
export const FIRST_WINDOW_BYTES = 256 * 1024;
const MAX_WINDOW_BYTES = 0xffff_ffff;
const NOTHING: Buffer = Buffer.alloc(0);

/** One stream of bytes in each direction. Each is sent no faster than its reader takes it. */
export class YamuxStream {
  readonly id: number;
  readonly #session: YamuxStreamSession;
  /** Undefined until `handle`, and once all is over. */
  #handler: YamuxStreamHandler | undefined;
  /** To go out with the next frame: the one that opens the stream, or accepts it. */
  #firstFlag: number;
  /** Whether what the other side said before it reset the stream is still told. */
  readonly #tellsAfterReset: boolean;

  // Sending.
  #credit = FIRST_WINDOW_BYTES;
  #queue: Buffer[] = [];
  #isEnding = false;
  #isEndSent = false;
  #resetsWhenSent = false;
  #wantsDrain = false;

  // Receiving.
  /** What the other side may still send. */
  #window = FIRST_WINDOW_BYTES;
  #fullWindow = FIRST_WINDOW_BYTES;
  readonly #held = new HeldBytes();
  #isPaused = true;
  #isEndReceived = false;
  #isEndTold = false;
  #failure: Error | null = null;
  #isClosed = false;

  /** @param opensIt this side does */
  constructor(id: number, session: YamuxStreamSession, opensIt: boolean) {
    this.id = id;
    this.#session = session;
    this.#firstFlag = opensIt ? FRAME_FLAG.syn : FRAME_FLAG.ack;
    this.#tellsAfterReset = opensIt;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Begins to tell. To be called once. @param windowBytes that may lie unread, of at least what a stream begins with */
  handle(handler: YamuxStreamHandler, windowBytes = FIRST_WINDOW_BYTES): void {
    if (this.#isClosed) return;
    this.#handler = handler;
    this.#fullWindow = windowBytes;
    this.resume();
  }

  /** @returns false when it is time to wait for `onDrain`. After the end it does nothing. */
  write(chunk: Buffer): boolean {
    if (this.#isClosed || this.#isEnding || chunk.length === 0) return true;
    if (this.#queue.length > 0 || chunk.length > this.#credit) this.#queue.push(chunk);
    else this.#send(chunk, 0);
    if (this.#queue.length > 0) this.#pump();
    if (this.#queue.length === 0 && this.#credit > 0 && !this.#session.isCongested) return true;
    this.#wantsDrain = true;
    if (this.#session.isCongested) this.#session.whenWritable(this);
    return false;
  }

  /** This side has said all. @param last goes out in one frame with the end */
  end(last = NOTHING): void {
    if (this.#isClosed || this.#isEnding) return;
    this.#isEnding = true;
    this.#queue.push(last);
    this.#pump();
  }

  /** Goes on telling. */
  resume(): void {
    this.#isPaused = false;
    if (this.#handler !== undefined) this.#grant();
    while (!this.#isPaused && this.#handler !== undefined) {
      const chunk = this.#held.shift();
      if (chunk === undefined) break;
      this.#tell(chunk);
    }
    this.#tellEnd();
  }

  /** Ends both directions at once; where both sides have said all, there is nothing to break off. */
  reset(): void {
    if (this.#isClosed) return;
    this.#sendReset();
    this.#close(null);
  }

  /** Ends both directions once what was written has left. */
  resetWhenSent(): void {
    if (this.#isClosed || this.#isEnding) return;
    if (this.#queue.length > 0) {
      this.#resetsWhenSent = true;
      return;
    }
    this.#sendReset();
    this.#close(null);
  }

  /** For the session: the other side says how much more it takes. */
  onWindow(bytes: number): void {
    this.#credit += bytes;
    if (this.#credit > MAX_WINDOW_BYTES) this.#session.violated("a window grows beyond its measure");
    this.#pump();
    if (!this.#session.isCongested) this.onWritable();
    else if (this.#wantsDrain) this.#session.whenWritable(this);
  }

  /** For the session: there is room in the connection. */
  onWritable(): void {
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
    if (this.#isPaused) this.#held.push(chunk);
    else this.#tell(chunk);
  }

  /** For the session: the other side has said all. */
  onFin(): void {
    this.#isEndReceived = true;
    this.#tellEnd();
  }

  /** For the session: the other side has reset the stream, or the connection is lost. */
  onLost(failure: Error, isReset: boolean): void {
    if (this.#isClosed) return;
    if (isReset && this.#tellsAfterReset && this.#held.length > 0) {
      // Its reader is not ready for what came before.
      this.#failure = failure;
      this.#queue = [];
      this.#isEnding = true;
    } else this.#close(failure);
  }

  #tell(chunk: Buffer): void {
    if (this.#handler?.onData(chunk) === false) this.#isPaused = true;
    else this.#grant();
  }

  /** Lets the other side go on, where it has used half of what it may send. */
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
    // A reader that paused after the last bytes takes the end at once: there is nothing more to hold back.
    if (!this.#isEndReceived || this.#isEndTold) return;
    this.#isEndTold = true;
    this.#handler.onEnd();
    this.#closeWhenOver();
  }

  #pump(): void {
    for (let chunk = this.#queue[0]; chunk !== undefined; chunk = this.#queue[0]) {
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
    this.#session.sendData(this.id, flags | this.#takeFirstFlag(), chunk);
  }

  #sendReset(): void {
    // For the other side the stream is over, or has never begun.
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
    this.#held.clear();
    this.#session.forget(this.id);
    handler?.onClose(failure);
  }
}
