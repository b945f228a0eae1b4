/** Pieces that are smaller share a buffer of this size. */
const SHARED_BYTES = 4096;

/** What was received and not read yet. A piece that is part of a much larger read of the connection is copied, and does not keep all of that. */
export class HeldBytes {
  readonly #pieces: Buffer[] = [];
  /** The last piece, while small ones may still be put behind it. */
  #shared: Buffer | undefined;
  #sharedBytes = 0;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  push(piece: Buffer): void {
    this.#length += piece.length;
    if (this.#shared !== undefined && this.#sharedBytes + piece.length <= SHARED_BYTES) {
      this.#sharedBytes += piece.copy(this.#shared, this.#sharedBytes);
      return;
    }
    this.#seal();
    if (piece.length < SHARED_BYTES) {
      this.#shared = Buffer.allocUnsafeSlow(SHARED_BYTES);
      this.#sharedBytes = piece.copy(this.#shared);
      this.#pieces.push(this.#shared);
    } else this.#pieces.push(2 * piece.length < piece.buffer.byteLength ? Buffer.from(piece) : piece);
  }

  shift(): Buffer | undefined {
    if (this.#pieces.length === 1) this.#seal();
    const piece = this.#pieces.shift();
    this.#length -= piece?.length ?? 0;
    return piece;
  }

  clear(): void {
    this.#pieces.length = 0;
    this.#shared = undefined;
    this.#length = 0;
  }

  #seal(): void {
    if (this.#shared === undefined) return;
    this.#pieces[this.#pieces.length - 1] = this.#shared.subarray(0, this.#sharedBytes);
    this.#shared = undefined;
  }
}
