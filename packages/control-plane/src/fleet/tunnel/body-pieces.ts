/** Maximum size of one write, so that other calls of the tunnel are not delayed. */
const MAX_WRITE_BYTES = 64 * 1024;

/** A complete body, read in pieces. */
export class BodyPieces {
  #body: readonly Buffer[];
  #chunk = 0;
  #offset = 0;

  constructor(body: readonly Buffer[]) {
    this.#body = body;
  }

  /** @returns undefined after the last piece. No piece is empty. */
  next(): Buffer | undefined {
    for (let chunk = this.#body[this.#chunk]; chunk !== undefined; chunk = this.#body[this.#chunk]) {
      const piece = chunk.subarray(this.#offset, this.#offset + MAX_WRITE_BYTES);
      this.#offset += piece.length;
      if (this.#offset >= chunk.length) {
        this.#chunk += 1;
        this.#offset = 0;
      }
      if (piece.length > 0) return piece;
    }
    // The response may take much longer than the request.
    this.drop();
    return undefined;
  }

  /** Releases the rest. */
  drop(): void {
    this.#body = [];
  }
}
