/** One write is at most this long: other calls of the tunnel come between, and one huge write overruns HTTP/2's session memory. */
const MAX_WRITE_BYTES = 64 * 1024;

/** A body that is known whole, piece by piece. */
export class BodyPieces {
  #body: readonly Buffer[];
  #chunk = 0;
  #offset = 0;

  constructor(body: readonly Buffer[]) {
    this.#body = body;
  }

  /** @returns undefined after the last one. None is empty. */
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
    // The answer may last much longer than the request.
    this.drop();
    return undefined;
  }

  /** Nobody wants the rest. */
  drop(): void {
    this.#body = [];
  }
}
