import type { Duplex } from "node:stream";
import { TurnShare } from "../turn-share.ts";
import { FrameBudget } from "./frame-budget.ts";
import { FrameWriter } from "./frame-writer.ts";
import { FRAME_FLAG, FRAME_TYPE, type FrameHead, FrameReader, type FrameSink, YamuxViolation } from "./frames.ts";
import { YamuxStream, type YamuxStreamSession } from "./stream.ts";
import { StreamIds } from "./stream-ids.ts";

export interface YamuxSessionOptions {
  readonly socket: Duplex;
  readonly clock: { /** Monotonic milliseconds. */ monotonic(): number };
  /** Called for each stream that the other side opens, before any of its other events. Absent: it may open none. */
  readonly onStream?: (stream: YamuxStream) => void;
  /** Called once, after all streams are closed. @param reason undefined after an orderly end by either side */
  readonly onClose: (reason: Error | undefined) => void;
}

/** Maximum number of open streams from the other side. */
const MAX_ACCEPTED_STREAMS = 65_536;
/** Limit of unread bytes of all streams in a session: 512 full windows. */
const MAX_HELD_BYTES = 128 * 1024 * 1024;
/** Pongs for older pings are ignored. */
const MAX_OPEN_PINGS = 16;
const MAX_PING_NUMBER = 0xffff_ffff;
const ENDS = FRAME_FLAG.fin | FRAME_FLAG.rst;
const GO_AWAY_NORMAL = 0;
const GO_AWAY_VIOLATION = 1;
const GO_AWAY_INTERNAL = 2;

/** A bug on this side, triggered by received data. */
export class StreamHandlerFailed extends Error {
  override readonly name = "StreamHandlerFailed";

  constructor(cause: unknown) {
    super("a call failed over what was received", { cause });
  }
}

/** Multiplexes streams over one connection. The side without `onStream` opens them. */
export class YamuxSession implements FrameSink, YamuxStreamSession {
  readonly #socket: Duplex;
  readonly #onStream: ((stream: YamuxStream) => void) | undefined;
  readonly #onClose: (reason: Error | undefined) => void;
  readonly #reader = new FrameReader(this);
  readonly #writer: FrameWriter;
  readonly #share: TurnShare;
  readonly #budget: FrameBudget;
  readonly #streams = new Map<number, YamuxStream>();
  /** The stream whose payload is being read; undefined if it is discarded. */
  #receiving: YamuxStream | undefined;
  #receivingFlags = 0;
  readonly #ids = new StreamIds();
  readonly #pings = new Map<number, () => void>();
  #pingNumber = 0;
  /** The one ping left unanswered while the connection is congested: a peer that pings without reading cannot fill the memory. */
  #askedPing: number | undefined;
  readonly #waiting = new Set<YamuxStream>();
  #received = 0;
  #drains = 0;
  #heldBytes = 0;
  #isGoingAway = false;
  #reason: Error | undefined;
  #isClosed = false;

  constructor({ socket, clock, onStream, onClose }: YamuxSessionOptions) {
    this.#socket = socket;
    this.#budget = new FrameBudget(clock);
    this.#onStream = onStream;
    this.#onClose = onClose;
    this.#writer = new FrameWriter(socket);
    this.#share = new TurnShare(socket, () => true);
    socket.on("data", (bytes: Buffer) => this.#read(bytes));
    socket.on("drain", () => this.#onWritable());
    socket.on("error", (error: Error) => this.destroy(error));
    socket.on("end", () => this.#onSocketEnd("the other side closed the connection"));
    socket.on("close", () => this.#onSocketEnd("the connection is lost"));
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Bytes received so far. */
  get received(): number {
    return this.#received;
  }

  /** How often the connection's send queue was emptied. */
  get drains(): number {
    return this.#drains;
  }

  /** Whether a stream can be opened. */
  get isUsable(): boolean {
    return !this.#isClosed && !this.#isGoingAway;
  }

  get isCongested(): boolean {
    return this.#writer.isCongested;
  }

  /** @throws Error if the session accepts no new streams */
  open(): YamuxStream {
    if (!this.isUsable) throw new Error("the session takes no new streams");
    const stream = new YamuxStream(this.#ids.take(this.#streams), this, true);
    this.#streams.set(stream.id, stream);
    return stream;
  }

  ping(onAnswer: () => void): void {
    if (this.#isClosed) return;
    this.#pingNumber = (this.#pingNumber + 1) % MAX_PING_NUMBER;
    this.#pings.set(this.#pingNumber, onAnswer);
    for (const oldest of this.#pings.keys()) {
      if (this.#pings.size <= MAX_OPEN_PINGS) break;
      this.#pings.delete(oldest);
    }
    this.#writer.send({ type: FRAME_TYPE.ping, flags: FRAME_FLAG.syn, streamId: 0, length: this.#pingNumber });
  }

  /** Ends the session in order. Call it when no stream is open: open streams fail. */
  end(): void {
    if (this.#isClosed) return;
    this.#goAway(GO_AWAY_NORMAL);
    this.#isGoingAway = true;
    this.#socket.end();
  }

  /** Closes the session and all streams. @param reason undefined for an orderly end */
  destroy(reason?: Error): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#reason = reason;
    this.#reader.stop();
    this.#socket.destroy();
    const failure = reason ?? new Error("the connection was closed");
    for (const stream of this.#streams.values()) stream.onLost(failure, false);
    this.#pings.clear();
    this.#onClose(this.#reason);
  }

  onFrame(frame: FrameHead): void {
    switch (frame.type) {
      case FRAME_TYPE.data:
      case FRAME_TYPE.windowUpdate:
        this.#onStreamFrame(frame);
        break;
      case FRAME_TYPE.ping:
        this.#budget.spend();
        this.#onPing(frame);
        break;
      case FRAME_TYPE.goAway:
        this.#budget.spend();
        this.#isGoingAway = true;
        if (frame.length !== GO_AWAY_NORMAL) this.destroy(new Error(`the other side gave up (code ${frame.length})`));
    }
  }

  onPayload(chunk: Buffer, isLast: boolean): void {
    const stream = this.#receiving;
    stream?.onPayload(chunk);
    if (isLast && stream !== undefined) this.#onFlags(stream, this.#receivingFlags);
  }

  sendData(streamId: number, flags: number, payload: Buffer): void {
    this.#writer.sendData({ streamId, flags }, payload);
  }

  sendWindow(streamId: number, flags: number, bytes: number): void {
    if ((flags & FRAME_FLAG.rst) !== 0) this.#budget.onReset();
    this.#writer.send({ type: FRAME_TYPE.windowUpdate, flags, streamId, length: bytes });
  }

  violated(reason: string): never {
    throw new YamuxViolation(reason);
  }

  whenWritable(stream: YamuxStream): void {
    this.#waiting.add(stream);
  }

  forget(stream: YamuxStream): void {
    this.#streams.delete(stream.id);
    this.#waiting.delete(stream);
  }

  onUseless(): void {
    this.#budget.spend();
  }

  hold(bytes: number): boolean {
    this.#heldBytes += bytes;
    return this.#heldBytes <= MAX_HELD_BYTES;
  }

  #read(bytes: Buffer): void {
    this.#received += bytes.length;
    try {
      this.#reader.push(bytes);
    } catch (error) {
      this.#goAway(error instanceof YamuxViolation ? GO_AWAY_VIOLATION : GO_AWAY_INTERNAL);
      // Uncaught, it would end the process and all other calls.
      this.destroy(error instanceof YamuxViolation ? error : new StreamHandlerFailed(error));
    }
    this.#share.took(bytes.length);
  }

  #onSocketEnd(reason: string): void {
    this.destroy(this.#isGoingAway ? undefined : new Error(reason));
  }

  #onStreamFrame(frame: FrameHead): void {
    const { type, flags, streamId, length } = frame;
    const stream = (flags & FRAME_FLAG.syn) === 0 ? this.#streams.get(streamId) : this.#accept(streamId);
    const hasPayload = type === FRAME_TYPE.data && length > 0;
    if (hasPayload) {
      this.#receiving = stream;
      this.#receivingFlags = flags;
    }
    if (stream === undefined) {
      // A stream that this side has reset, which the other side did not know yet.
      this.#budget.spend(hasPayload ? length : 0);
      return;
    }
    if (type === FRAME_TYPE.windowUpdate) stream.onWindow(length);
    else if (!hasPayload && (flags & ENDS) === 0) this.#budget.spend();
    if (!hasPayload) this.#onFlags(stream, flags);
  }

  #onFlags(stream: YamuxStream, flags: number): void {
    if ((flags & FRAME_FLAG.fin) !== 0) stream.onFin();
    if ((flags & FRAME_FLAG.rst) !== 0) stream.onLost(new Error("the other side broke off"), true);
  }

  #accept(streamId: number): YamuxStream | undefined {
    const isTheirs = streamId !== 0 && streamId % 2 === 1 && !this.#streams.has(streamId);
    if (this.#onStream === undefined || !isTheirs) throw new YamuxViolation("a stream that may not be opened");
    if (this.#streams.size >= MAX_ACCEPTED_STREAMS) {
      this.#writer.send({ type: FRAME_TYPE.windowUpdate, flags: FRAME_FLAG.rst, streamId, length: 0 });
      return undefined;
    }
    const stream = new YamuxStream(streamId, this, false);
    this.#streams.set(streamId, stream);
    this.#onStream(stream);
    return stream;
  }

  #onPing({ flags, length }: FrameHead): void {
    if ((flags & FRAME_FLAG.syn) !== 0) {
      this.#askedPing = length;
      if (!this.isCongested) this.#answerPing();
      return;
    }
    const onAnswer = this.#pings.get(length);
    this.#pings.delete(length);
    onAnswer?.();
  }

  #answerPing(): void {
    if (this.#askedPing === undefined) return;
    this.#writer.send({ type: FRAME_TYPE.ping, flags: FRAME_FLAG.ack, streamId: 0, length: this.#askedPing });
    this.#askedPing = undefined;
  }

  /** A stream that has written and waits again goes to the end of the queue. */
  #onWritable(): void {
    this.#drains += 1;
    this.#answerPing();
    for (const stream of this.#waiting) {
      if (this.isCongested) return;
      this.#waiting.delete(stream);
      stream.onWritable();
    }
  }

  #goAway(code: number): void {
    this.#writer.send({ type: FRAME_TYPE.goAway, flags: 0, streamId: 0, length: code });
    this.#writer.flush();
  }
}
