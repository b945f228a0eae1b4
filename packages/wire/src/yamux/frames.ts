/**
 * Frames of yamux (https://github.com/hashicorp/yamux/blob/master/spec.md): a 12-byte head, followed by the payload in data frames.
 *
 *     version 1 | type 1 | flags 2 | stream id 4 | length 4        big-endian
 */

/** The other side violated the yamux protocol. */
export class YamuxViolation extends Error {
  override readonly name: string = "YamuxViolation";
}

export const FRAME_HEAD_BYTES = 12;
const VERSION = 0;

export const FRAME_TYPE = { data: 0, windowUpdate: 1, ping: 2, goAway: 3 } as const;
export type FrameType = (typeof FRAME_TYPE)[keyof typeof FRAME_TYPE];

export const FRAME_FLAG = { syn: 1, ack: 2, fin: 4, rst: 8 } as const;

/** `length` is the payload's length in data frames; in other frames, their only value. */
export interface FrameHead {
  readonly type: FrameType;
  readonly flags: number;
  readonly streamId: number;
  readonly length: number;
}

/** @returns the end of the head. */
export function writeFrameHead({ type, flags, streamId, length }: FrameHead, into: Buffer, at: number): number {
  into[at] = VERSION;
  into[at + 1] = type;
  into.writeUInt16BE(flags, at + 2);
  into.writeUInt32BE(streamId, at + 4);
  return into.writeUInt32BE(length, at + 8);
}

/** Receives frames as their bytes arrive. */
export interface FrameSink {
  /** Called before the payload of a data frame; other frames have none. */
  onFrame(frame: FrameHead): void;
  /** @param isLast whether the payload is complete */
  onPayload(chunk: Buffer, isLast: boolean): void;
}

export class FrameReader {
  readonly #sink: FrameSink;
  /** Remaining payload bytes. */
  #left = 0;
  readonly #head = Buffer.alloc(FRAME_HEAD_BYTES);
  #headBytes = 0;
  #isStopped = false;

  constructor(sink: FrameSink) {
    this.#sink = sink;
  }

  /** Stops all callbacks, even from within `push`. */
  stop(): void {
    this.#isStopped = true;
  }

  /** @throws YamuxViolation */
  push(bytes: Buffer): void {
    let at = 0;
    while (at < bytes.length && !this.#isStopped) {
      if (this.#left > 0) at = this.#readPayload(bytes, at);
      else if (this.#headBytes === 0 && bytes.length - at >= FRAME_HEAD_BYTES) {
        this.#readHead(bytes, at);
        at += FRAME_HEAD_BYTES;
      } else at = this.#gatherHead(bytes, at);
    }
  }

  #readPayload(bytes: Buffer, from: number): number {
    const to = Math.min(bytes.length, from + this.#left);
    this.#left -= to - from;
    const isAll = from === 0 && to === bytes.length;
    this.#sink.onPayload(isAll ? bytes : bytes.subarray(from, to), this.#left === 0);
    return to;
  }

  /** Handles a head that is split over several chunks. */
  #gatherHead(bytes: Buffer, from: number): number {
    const to = Math.min(bytes.length, from + FRAME_HEAD_BYTES - this.#headBytes);
    bytes.copy(this.#head, this.#headBytes, from, to);
    this.#headBytes += to - from;
    if (this.#headBytes === FRAME_HEAD_BYTES) {
      this.#headBytes = 0;
      this.#readHead(this.#head, 0);
    }
    return to;
  }

  #readHead(bytes: Buffer, at: number): void {
    const type = bytes[at + 1] ?? 0;
    if (bytes[at] !== VERSION || !isFrameType(type)) throw new YamuxViolation("a frame of an unknown kind");
    const length = bytes.readUInt32BE(at + 8);
    if (type === FRAME_TYPE.data) this.#left = length;
    this.#sink.onFrame({ type, flags: bytes.readUInt16BE(at + 2), streamId: bytes.readUInt32BE(at + 4), length });
  }
}

function isFrameType(type: number): type is FrameType {
  return type <= FRAME_TYPE.goAway;
}
