import type { Readable } from "node:stream";

/** Reads a stream by counted bytes. */
export class ByteSource {
  readonly #pieces: AsyncIterator<Buffer>;
  #rest = Buffer.alloc(0);

  constructor(stream: Readable) {
    this.#pieces = (stream as AsyncIterable<Buffer>)[Symbol.asyncIterator]();
  }

  /** Small parts: they are in memory at once. @throws Error where the stream ends before. */
  async read(bytes: number): Promise<Buffer> {
    const read: Buffer[] = [];
    for await (const piece of this.pieces(bytes)) read.push(piece);
    return Buffer.concat(read);
  }

  /** @throws Error where the stream ends before. */
  async *pieces(bytes: number): AsyncGenerator<Buffer> {
    let left = bytes;
    while (left > 0) {
      const piece = this.#rest.length > 0 ? this.#rest : await this.#next();
      if (piece === null) throw new Error("it ends too early");
      const taken = piece.subarray(0, left);
      this.#rest = piece.subarray(taken.length);
      left -= taken.length;
      yield taken;
    }
  }

  /** To the end, so that what checks the stream there does. */
  async drain(): Promise<void> {
    while ((await this.#next()) !== null);
  }

  async #next(): Promise<Buffer<ArrayBuffer> | null> {
    const { value, done } = await this.#pieces.next();
    return done === true ? null : (value as Buffer<ArrayBuffer>);
  }
}
