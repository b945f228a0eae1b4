/** What one Buffer costs beside its bytes: an answer in tiny pieces must not cost more memory than is counted. */
const PIECE_OVERHEAD_BYTES = 128;

/** Collects pieces up to a limit. */
export class BoundedBytes {
  readonly #limit: number;
  #pieces: Buffer[] = [];
  #cost = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** @returns false once it is too much; then nothing is kept. */
  add(piece: Buffer): boolean {
    this.#cost += piece.length + PIECE_OVERHEAD_BYTES;
    if (this.#cost > this.#limit) this.#pieces = [];
    // A copy, since a small piece would keep the whole of a large read in memory.
    else this.#pieces.push(Buffer.from(piece));
    return this.#cost <= this.#limit;
  }

  /** @returns all that was added since the last time. */
  take(): Buffer {
    const bytes = Buffer.concat(this.#pieces);
    this.#pieces = [];
    this.#cost = 0;
    return bytes;
  }
}
