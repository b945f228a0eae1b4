const NOTHING: Buffer = Buffer.alloc(0);

/** Bytes that are only useful once more of them have arrived. However small the pieces are, each byte is copied a bounded number of times. */
export class GrowingBuffer {
  /** May have room behind `#length`. */
  #store = NOTHING;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  get bytes(): Buffer {
    return this.#length === this.#store.length ? this.#store : this.#store.subarray(0, this.#length);
  }

  /** Keeps a piece as the first one, without a copy. */
  hold(piece: Buffer): void {
    this.#store = piece;
    this.#length = piece.length;
  }

  /** @returns all bytes so far. Views of it stay valid: nothing is ever written over. */
  append(piece: Buffer): Buffer {
    const length = this.#length + piece.length;
    if (length > this.#store.length) {
      // Usually one more piece completes the bytes, so only further ones get room to grow.
      const isFirst = this.#length === this.#store.length && this.#store.length < piece.length;
      const larger = Buffer.allocUnsafe(isFirst ? length : 2 * length);
      this.#store.copy(larger, 0, 0, this.#length);
      this.#store = larger;
    }
    piece.copy(this.#store, this.#length);
    this.#length = length;
    return this.bytes;
  }

  clear(): void {
    this.#store = NOTHING;
    this.#length = 0;
  }
}
