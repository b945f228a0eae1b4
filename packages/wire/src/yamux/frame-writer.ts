import type { Duplex } from "node:stream";
import { atEndOfTurn } from "../end-of-turn.ts";
import { FRAME_HEAD_BYTES, FRAME_TYPE, type FrameHead, writeFrameHead } from "./frames.ts";

/** Payloads up to this size are copied behind their head: one buffer is cheaper to send than two. */
const COPIED_BYTES = 4096;
const MIN_SLAB_BYTES = 512;
const MAX_SLAB_BYTES = 64 * 1024;
const NOTHING: Buffer = Buffer.alloc(0);
/** Larger batches are sent before the end of the turn. */
const BATCH_BYTES = 64 * 1024;
/** Bytes queued in the connection before writers must wait. Larger queues cost more memory than they save time. */
const CONGESTED_BYTES = 192 * 1024;

/** Sends all frames of an event-loop turn together. */
export class FrameWriter {
  readonly #socket: Duplex;
  /** This turn's heads and small payloads, contiguous, to be sent as one buffer. */
  #slab = NOTHING;
  #sealed = 0;
  #at = 0;
  /** Size that the last turn needed. Freed between turns, because most tunnels are idle. */
  #slabBytes = MIN_SLAB_BYTES;
  /** Bytes copied into slabs in this turn. */
  #copiedBytes = 0;
  #pieces: Buffer[] = [];
  #bytes = 0;

  constructor(socket: Duplex) {
    this.#socket = socket;
  }

  /** Writers must wait for the connection's `drain`. */
  get isCongested(): boolean {
    return this.#socket.writableLength + this.#bytes >= CONGESTED_BYTES;
  }

  /** @param payload of a data frame; retained until sent */
  send(head: FrameHead, payload?: Buffer): void {
    const copied = payload !== undefined && payload.length <= COPIED_BYTES ? payload : undefined;
    const bytes = FRAME_HEAD_BYTES + (copied?.length ?? 0);
    if (this.#at + bytes > this.#slab.length) this.#newSlab(bytes);
    this.#copiedBytes += bytes;
    this.#at = writeFrameHead(head, this.#slab, this.#at);
    if (copied !== undefined) this.#at += copied.copy(this.#slab, this.#at);
    else if (payload !== undefined) {
      this.#seal();
      this.#pieces.push(payload);
    }
    if (this.#bytes === 0) atEndOfTurn(() => this.flush());
    this.#bytes += FRAME_HEAD_BYTES + (payload?.length ?? 0);
    if (this.#bytes >= BATCH_BYTES) this.flush();
  }

  sendData(head: Omit<FrameHead, "type" | "length">, payload: Buffer): void {
    const { flags, streamId } = head;
    this.send({ type: FRAME_TYPE.data, flags, streamId, length: payload.length }, payload);
  }

  /** Sends everything queued now. */
  flush(): void {
    if (this.#bytes === 0) return;
    this.#seal();
    this.#slabBytes = Math.min(MAX_SLAB_BYTES, Math.max(MIN_SLAB_BYTES, 2 * this.#copiedBytes));
    this.#copiedBytes = 0;
    this.#slab = NOTHING;
    this.#sealed = 0;
    this.#at = 0;
    const pieces = this.#pieces;
    this.#pieces = [];
    this.#bytes = 0;
    const socket = this.#socket;
    if (socket.destroyed || socket.writableEnded) return;
    if (pieces.length > 1) socket.cork();
    for (const piece of pieces) socket.write(piece);
    if (pieces.length > 1) socket.uncork();
  }

  #seal(): void {
    if (this.#at > this.#sealed) this.#pieces.push(this.#slab.subarray(this.#sealed, this.#at));
    this.#sealed = this.#at;
  }

  #newSlab(bytes: number): void {
    this.#seal();
    this.#slab = Buffer.allocUnsafe(Math.max(this.#slabBytes, bytes));
    this.#slabBytes = Math.min(MAX_SLAB_BYTES, 2 * this.#slabBytes);
    this.#sealed = 0;
    this.#at = 0;
  }
}
