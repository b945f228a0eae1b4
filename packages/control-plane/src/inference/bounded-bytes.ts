import type { DomainError } from "@fairlead/protocol/errors";
import { MAX_CONVERTED_BYTES, tooLong } from "./relayed-answer.ts";

/** What one Buffer costs beside its bytes: an answer in tiny pieces must not cost more memory than is counted. */
const PIECE_OVERHEAD_BYTES = 128;

/** Takes bytes from the host's budget for as long as the call lasts. @returns why there are no more. */
export type HoldBytes = (bytes: number) => DomainError | null;

/** Collects the pieces of what has to be whole before it can be converted, up to a limit. */
export class BoundedBytes {
  readonly #hold: HoldBytes;
  #pieces: Buffer[] = [];
  #cost = 0;

  constructor(hold: HoldBytes) {
    this.#hold = hold;
  }

  /** @returns why it is too much; then nothing is kept. */
  add(piece: Buffer): DomainError | null {
    this.#cost += piece.length + PIECE_OVERHEAD_BYTES;
    const fault = this.#cost > MAX_CONVERTED_BYTES ? tooLong() : this.#hold(this.#cost);
    // A copy, since a small piece would keep the whole of a large read in memory.
    if (fault === null) this.#pieces.push(Buffer.from(piece));
    else this.#pieces = [];
    return fault;
  }

  /** @returns all that was added since the last time. */
  take(): Buffer {
    const bytes = Buffer.concat(this.#pieces);
    this.#pieces = [];
    this.#cost = 0;
    return bytes;
  }
}
