import type { Duplex } from "node:stream";
import { atEndOfTurn } from "../end-of-turn.ts";
import { FRAME_HEAD_BYTES, FRAME_TYPE, type FrameHead, writeFrameHead } from "./frames.ts";

/** Up to here a payload is copied behind its head: one piece to send is cheaper than two. */
const COPIED_BYTES = 4096;
const MIN_SLAB_BYTES = 512;
const MAX_SLAB_BYTES = 64 * 1024;
const NOTHING: Buffer = Buffer.alloc(0);
/** More is not held back until the end of the turn. */
const BATCH_BYTES = 64 * 1024;
/** What may wait in the connection before writers are told to wait. More lies longer, and costs more to collect than it saves. */
const CONGESTED_BYTES = 192 * 1024;

/** Sends frames: those of one turn of the event loop together. */
export class FrameWriter {
  readonly #socket: Duplex;
  /** Heads and small payloads of this turn, one behind the other: to be sent as one piece. */
  #slab = NOTHING;
  #sealed = 0;
  #at = 0;
  /** As large as the last turn needed. Between turns there is none: most tunnels are idle. */
  #slabBytes = MIN_SLAB_BYTES;
  /** What this turn has put into slabs. */
  #copiedBytes = 0;
  #pieces: Buffer[] = [];
  #bytes = 0;

  constructor(socket: Duplex) {
    this.#socket = socket;
  }

  /** Who writes more has to wait for the connection's `drain`. */
  get isCongested(): boolean {
    return this.#socket.writableLength + this.#bytes >= CONGESTED_BYTES;
  }

  /** @param payload of data; kept until it is sent */
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

  /** What is held back goes out now. */
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
