const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf] as const;

/** Reads a list of Buffers as one byte sequence without joining them. Positions are byte offsets from the start. */
export class ByteReader {
  readonly #chunks: readonly Buffer[];
  #index = -1;
  #chunk: Buffer = Buffer.alloc(0);
  #offset = 0;
  /** Position of the current chunk's first byte. */
  #base = 0;

  constructor(chunks: readonly Buffer[]) {
    this.#chunks = chunks;
  }

  get position(): number {
    return this.#base + this.#offset;
  }

  /** Some clients send one, and most parsers skip it. */
  skipByteOrderMark(): void {
    if (this.peek() !== BYTE_ORDER_MARK[0]) return;
    for (const byte of BYTE_ORDER_MARK) if (this.peek() === byte) this.skip();
  }

  /** @returns the byte at the position, or -1 at the end. */
  peek(): number {
    if (this.#offset === this.#chunk.length && !this.#advance()) return -1;
    return this.#chunk[this.#offset] ?? -1;
  }

  /** Moves past the byte that `peek` returned. */
  skip(): void {
    this.#offset++;
  }

  /** Moves past JSON white space. @returns the next byte, or -1 at the end. */
  peekAfterSpace(): number {
    let byte = this.peek();
    while (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) {
      this.#offset++;
      byte = this.peek();
    }
    return byte;
  }

  /** Moves past a string whose opening quote was skipped. @returns false if it never closes. */
  skipString(): boolean {
    // Searching for quotes and counting the backslashes before them is many times faster than checking every byte.
    let escaped = false;
    while (this.peek() !== -1) {
      const start = this.#offset + (escaped ? 1 : 0);
      const quote = findQuote(this.#chunk, start);
      if (quote !== -1) {
        this.#offset = quote + 1;
        return true;
      }
      escaped = endsEscaped(this.#chunk, start, this.#chunk.length);
      this.#offset = this.#chunk.length;
    }
    return false;
  }

  /** @returns a copy of the bytes between two positions, neither beyond the reader's position. */
  slice(start: number, end: number): Buffer {
    if (start >= this.#base) return this.#chunk.subarray(start - this.#base, end - this.#base);
    return Buffer.concat(this.pieces(start, end));
  }

  /** Like `slice` without copying, as the underlying pieces. */
  pieces(start: number, end: number): Buffer[] {
    const pieces: Buffer[] = [];
    let base = this.#base;
    for (let index = this.#index; index >= 0; index--) {
      const chunk = this.#chunks[index] ?? this.#chunk;
      if (index < this.#index) base -= chunk.length;
      // Searched from the end, because most pieces may come after the range.
      if (base < end) pieces.push(chunk.subarray(Math.max(0, start - base), end - base));
      if (base <= start) break;
    }
    return pieces.reverse();
  }

  /** The current chunk and its position, for reading many bytes. */
  get chunk(): Buffer {
    return this.#chunk;
  }

  get chunkStart(): number {
    return this.#base;
  }

  #advance(): boolean {
    for (;;) {
      const next = this.#chunks[this.#index + 1];
      if (next === undefined) return false;
      this.#base += this.#chunk.length;
      this.#index++;
      this.#chunk = next;
      this.#offset = 0;
      if (next.length > 0) return true;
    }
  }
}

/** @returns the offset of the first unescaped quote from `start`, or -1. */
function findQuote(chunk: Buffer, start: number): number {
  let from = start;
  for (;;) {
    const quote = chunk.indexOf(QUOTE, from);
    if (quote === -1 || !endsEscaped(chunk, from, quote)) return quote;
    from = quote + 1;
  }
}

/** Whether the byte at `end` is escaped: preceded by an odd number of backslashes, counted no further back than `start`. */
function endsEscaped(chunk: Buffer, start: number, end: number): boolean {
  let at = end;
  while (at > start && chunk[at - 1] === BACKSLASH) at--;
  return (end - at) % 2 === 1;
}
