import { type Duplex, duplexPair } from "node:stream";
import { FRAME_FLAG, FRAME_HEAD_BYTES, FRAME_TYPE, type FrameHead, FrameReader, writeFrameHead } from "./frames.ts";
import { YamuxSession } from "./session.ts";
import { FIRST_WINDOW_BYTES, type YamuxStream, type YamuxStreamHandler } from "./stream.ts";

export const CLOCK = { monotonic: (): number => performance.now() };

/** One frame in bytes. Its length is that of the payload unless it says another. */
export function frame(head: Partial<FrameHead> & Pick<FrameHead, "type">, payload: Buffer = Buffer.alloc(0)): Buffer {
  const bytes = Buffer.alloc(FRAME_HEAD_BYTES);
  writeFrameHead({ flags: 0, streamId: 0, length: payload.length, ...head }, bytes, 0);
  return Buffer.concat([bytes, payload]);
}

/** What a stream was told, in order. */
export class StreamLog implements YamuxStreamHandler {
  readonly told: string[] = [];
  takes = true;

  onData(chunk: Buffer): boolean {
    this.told.push(chunk.toString());
    return this.takes;
  }

  onEnd(): void {
    this.told.push("end");
  }

  onDrain(): void {
    this.told.push("drain");
  }

  onClose(failure: Error | null): void {
    this.told.push(failure === null ? "closed" : `failed: ${failure.message}`);
  }

  get text(): string {
    return this.told.join("|");
  }
}

export type SentFrame = FrameHead & { readonly payload: Buffer };

/** The frames in what one side sends. */
export function framesOf(bytes: Buffer): SentFrame[] {
  const frames: { head: FrameHead; payload: Buffer[] }[] = [];
  new FrameReader({
    onFrame: (head) => void frames.push({ head, payload: [] }),
    onPayload: (chunk) => void frames.at(-1)?.payload.push(chunk),
  }).push(bytes);
  return frames.map(({ head, payload }) => ({ ...head, payload: Buffer.concat(payload) }));
}

/** A session whose other side is played by the test, frame by frame. */
export class LoneSession {
  readonly session: YamuxSession;
  readonly closed: string[] = [];
  readonly accepted: YamuxStream[] = [];
  readonly far: Duplex;
  readonly #near: Duplex;
  readonly #sent: Buffer[] = [];

  constructor(side: "opens" | "accepts", clock = CLOCK) {
    const [near, far] = duplexPair();
    this.far = far;
    this.#near = near;
    far.on("data", (bytes: Buffer) => void this.#sent.push(bytes));
    this.session = new YamuxSession({
      socket: near,
      clock,
      ...(side === "accepts" ? { onStream: (stream) => void this.accepted.push(stream) } : {}),
      onClose: (reason) => void this.closed.push(reason?.message ?? "in order"),
    });
  }

  /** Bytes in the connection that the other side has not read. */
  get waiting(): number {
    return this.#near.writableLength + this.far.readableLength;
  }

  /** What the session has sent, once it had its turn. */
  async sent(): Promise<SentFrame[]> {
    await turns(4);
    return framesOf(Buffer.concat(this.#sent));
  }

  async say(...frames: Buffer[]): Promise<void> {
    this.far.write(Buffer.concat(frames));
    await turns(4);
  }
}

/** A session with one accepted stream and its log. */
export async function accepted(): Promise<{ lone: LoneSession; log: StreamLog }> {
  const lone = new LoneSession("accepts");
  await lone.say(frame({ type: FRAME_TYPE.data, flags: FRAME_FLAG.syn, streamId: 1 }, Buffer.from("hello")));
  const log = new StreamLog();
  lone.accepted[0]?.handle(log);
  return { lone, log };
}

/** A session with one opened stream that the other side knows of, and its log. */
export function opened(): { lone: LoneSession; log: StreamLog; stream: YamuxStream } {
  const lone = new LoneSession("opens");
  const stream = lone.session.open();
  const log = new StreamLog();
  stream.handle(log);
  stream.write(Buffer.from("hello"));
  return { lone, log, stream };
}

export async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await new Promise(setImmediate);
}

/** What one side may send on one stream, as the frames on the way tell it. */
interface Direction {
  credit: number;
  isOver: boolean;
}

/**
 * Between two sessions: passes their frames on in other pieces, now and then late, and holds them to yamux.
 * @param next the size of the next piece in bytes, and how many turns of the event loop it waits.
 */
export class CheckedWire {
  readonly opener: Duplex;
  readonly accepter: Duplex;
  readonly faults: string[] = [];
  readonly #directions = new Map<string, Direction>();

  constructor(next: () => { readonly bytes: number; readonly turns: number }) {
    const [opener, nearOpener] = duplexPair();
    const [accepter, nearAccepter] = duplexPair();
    this.opener = opener;
    this.accepter = accepter;
    void this.#pass(nearOpener, nearAccepter, { next, from: "opener" });
    void this.#pass(nearAccepter, nearOpener, { next, from: "accepter" });
  }

  async #pass(from: Duplex, to: Duplex, { next, ...sender }: Passing): Promise<void> {
    let isOfData = false;
    let head: FrameHead | undefined;
    const reader = new FrameReader({
      onFrame: (frame) => {
        head = frame;
        isOfData = frame.type === FRAME_TYPE.data || frame.type === FRAME_TYPE.windowUpdate;
        if (isOfData) this.#check(frame, sender.from);
      },
      onPayload: () => {
        if (head?.type !== FRAME_TYPE.data) this.faults.push("a payload of no data");
      },
    });
    for await (const read of from as AsyncIterable<Buffer>) {
      for (let at = 0; at < read.length; ) {
        const { bytes, turns: late } = next();
        const piece = read.subarray(at, at + bytes);
        at += piece.length;
        await turns(late);
        reader.push(piece);
        if (!to.write(piece)) await new Promise((resolve) => to.once("drain", resolve));
      }
    }
    to.end();
  }

  #check({ type, flags, streamId, length }: FrameHead, from: Sender): void {
    const said = this.#direction(from, streamId);
    if ((flags & FRAME_FLAG.syn) !== 0 && from !== "opener") this.faults.push("a stream opened by the accepter");
    if (type === FRAME_TYPE.data) said.credit -= length;
    else this.#direction(from === "opener" ? "accepter" : "opener", streamId).credit += length;
    if (said.credit < 0) this.faults.push(`stream ${streamId}: more data than credit`);
    const isData = type === FRAME_TYPE.data || (flags & FRAME_FLAG.fin) !== 0;
    if (isData && said.isOver) this.faults.push(`stream ${streamId}: data after the end`);
    if ((flags & (FRAME_FLAG.fin | FRAME_FLAG.rst)) !== 0) said.isOver = true;
  }

  #direction(from: Sender, streamId: number): Direction {
    const key = `${from} ${streamId}`;
    const direction = this.#directions.get(key) ?? { credit: FIRST_WINDOW_BYTES, isOver: false };
    this.#directions.set(key, direction);
    return direction;
  }
}

type Sender = "opener" | "accepter";

interface Passing {
  readonly next: () => { readonly bytes: number; readonly turns: number };
  readonly from: Sender;
}
