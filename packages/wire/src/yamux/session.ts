import type { Duplex } from "node:stream";
import { FrameWriter } from "./frame-writer.ts";
import { FRAME_FLAG, FRAME_TYPE, type FrameHead, FrameReader, type FrameSink, YamuxViolation } from "./frames.ts";
import { YamuxStream, type YamuxStreamSession } from "./stream.ts";
import { StreamIds } from "./stream-ids.ts";

export interface YamuxSessionOptions {
  readonly socket: Duplex;
  /** Called for each stream that the other side opens, before anything is told of it. Absent: it may open none. */
  readonly onStream?: (stream: YamuxStream) => void;
  /** Called once, after every stream is closed. @param reason undefined where the other side or this one ended it in order */
  readonly onClose: (reason: Error | undefined) => void;
}

/** How many streams the other side may have open. */
const MAX_ACCEPTED_STREAMS = 65_536;
const MAX_PING_NUMBER = 0xffff_ffff;
const GO_AWAY_NORMAL = 0;
const GO_AWAY_VIOLATION = 1;

/** Many streams over one connection. The side without `onStream` is the one that opens them. */
export class YamuxSession implements FrameSink, YamuxStreamSession {
  readonly #socket: Duplex;
  readonly #onStream: ((stream: YamuxStream) => void) | undefined;
  readonly #onClose: (reason: Error | undefined) => void;
  readonly #reader = new FrameReader(this);
  readonly #writer: FrameWriter;
  readonly #streams = new Map<number, YamuxStream>();
  /** Whose payload is being read; undefined where nobody wants it. */
  #receiving: YamuxStream | undefined;
  #receivingFlags = 0;
  readonly #ids = new StreamIds();
  readonly #pings = new Map<number, () => void>();
  #pingNumber = 0;
  /** Unanswered, while the connection has more to send than it can: whoever asks without reading fills no memory. */
  #askedPing: number | undefined;
  readonly #waiting = new Set<YamuxStream>();
  #received = 0;
  #isGoingAway = false;
  #reason: Error | undefined;
  #isClosed = false;

  constructor({ socket, onStream, onClose }: YamuxSessionOptions) {
    this.#socket = socket;
    this.#onStream = onStream;
    this.#onClose = onClose;
    this.#writer = new FrameWriter(socket);
    socket.on("data", (bytes: Buffer) => this.#read(bytes));
    socket.on("drain", () => this.#onWritable());
    socket.on("error", (error: Error) => this.destroy(error));
    socket.on("end", () => this.#onSocketEnd("the other side closed the connection"));
    socket.on("close", () => this.#onSocketEnd("the connection is lost"));
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Bytes that came until now. */
  get received(): number {
    return this.#received;
  }

  /** Whether a stream may be opened. */
  get isUsable(): boolean {
    return !this.#isClosed && !this.#isGoingAway;
  }

  get isCongested(): boolean {
    return this.#writer.isCongested;
  }

  /** @throws Error where the session takes no new streams */
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
    this.#writer.send({ type: FRAME_TYPE.ping, flags: FRAME_FLAG.syn, streamId: 0, length: this.#pingNumber });
  }

  /** Ends it in order. To be called when no stream is open: those that are fail. */
  end(): void {
    if (this.#isClosed) return;
    this.#goAway(GO_AWAY_NORMAL);
    this.#isGoingAway = true;
    this.#socket.end();
  }

  /** Ends it with all its streams. @param reason undefined: in order */
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
        this.#onPing(frame);
        break;
      case FRAME_TYPE.goAway:
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
    this.#writer.send({ type: FRAME_TYPE.windowUpdate, flags, streamId, length: bytes });
  }

  violated(reason: string): never {
    throw new YamuxViolation(reason);
  }

  whenWritable(stream: YamuxStream): void {
    this.#waiting.add(stream);
  }

  forget(streamId: number): void {
    this.#streams.delete(streamId);
  }

  #read(bytes: Buffer): void {
    this.#received += bytes.length;
    try {
      this.#reader.push(bytes);
    } catch (error) {
      if (!(error instanceof YamuxViolation)) throw error;
      this.#goAway(GO_AWAY_VIOLATION);
      this.destroy(error);
    }
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
    // One that this side has reset: the other side did not know it yet.
    if (stream === undefined) return;
    if (type === FRAME_TYPE.windowUpdate && length > 0) stream.onWindow(length);
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
      this.sendWindow(streamId, FRAME_FLAG.rst, 0);
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

  /** Whoever has written and waits again is behind all others. */
  #onWritable(): void {
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
