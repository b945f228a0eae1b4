import type { DomainError } from "@fairlead/protocol/errors";
import { MAX_CONVERTED_BYTES, tooLong } from "../calls/relayed-answer.ts";

/** Memory overhead of a Buffer, so that responses in tiny pieces are counted correctly. */
const PIECE_OVERHEAD_BYTES = 128;

/** Reserves bytes of the host's memory budget until the call ends. @returns the error if there are not enough. */
export type HoldBytes = (bytes: number) => DomainError | null;

/** Buffers, up to a limit, what must be complete before conversion. */
export class BoundedBytes {
  readonly #hold: HoldBytes;
  #pieces: Buffer[] = [];
  #cost = 0;

  constructor(hold: HoldBytes) {
    this.#hold = hold;
  }

  /** @returns the error if the limit is exceeded; then nothing is kept. */
  add(piece: Buffer): DomainError | null {
    this.#cost += piece.length + PIECE_OVERHEAD_BYTES;
    const fault = this.#cost > MAX_CONVERTED_BYTES ? tooLong() : this.#hold(this.#cost);
    // A copy, because a small piece would keep the whole of a large read in memory.
    if (fault === null) this.#pieces.push(Buffer.from(piece));
    else this.#pieces = [];
    return fault;
  }

  /** @returns everything added since the last call. */
  take(): Buffer {
    const bytes = Buffer.concat(this.#pieces);
    this.#pieces = [];
    this.#cost = 0;
    return bytes;
  }
}
