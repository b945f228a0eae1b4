const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf] as const;

/** A string this long that ends like base64 is an attached file; text has a space or a full stop in its last words. */
const ATTACHMENT_BYTES = 4096;
const SAMPLE_BYTES = 64;

/** Reads a list of Buffers as one run of bytes, without joining them. Positions are byte offsets from the start. */
export class ByteReader {
  readonly #chunks: readonly Buffer[];
  #index = -1;
  #chunk: Buffer = Buffer.alloc(0);
  #offset = 0;
  /** Position of the current chunk's first byte. */
  #base = 0;
  #attachments = 0;
  #attachmentBytes = 0;

  constructor(chunks: readonly Buffer[]) {
    this.#chunks = chunks;
  }

  get position(): number {
    return this.#base + this.#offset;
  }

  /** How many of the strings so far were attached files, and their bytes. */
  get attachments(): number {
    return this.#attachments;
  }

  get attachmentBytes(): number {
    return this.#attachmentBytes;
  }

  /** Some clients begin with one, and most parsers pass over it. */
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
    // Searching for quotes and counting the backslashes before them is many times faster than looking at every byte.
    const from = this.position;
    let escaped = false;
    while (this.peek() !== -1) {
      const start = this.#offset + (escaped ? 1 : 0);
      const quote = findQuote(this.#chunk, start);
      if (quote !== -1) {
        this.#offset = quote + 1;
        if (this.position - from > ATTACHMENT_BYTES) this.#countAttachment(from, quote);
        return true;
      }
      escaped = endsEscaped(this.#chunk, start, this.#chunk.length);
      this.#offset = this.#chunk.length;
    }
    return false;
  }

  /** @returns a copy of the bytes between two positions, the later of them at most the reader's own. */
  slice(start: number, end: number): Buffer {
    if (start >= this.#base) return this.#chunk.subarray(start - this.#base, end - this.#base);
    const pieces: Buffer[] = [];
    let base = this.#base;
    for (let index = this.#index; index >= 0; index--) {
      const chunk = this.#chunks[index] ?? this.#chunk;
      if (index < this.#index) base -= chunk.length;
      pieces.unshift(chunk.subarray(Math.max(0, start - base), Math.max(0, end - base)));
      if (base <= start) break;
    }
    return Buffer.concat(pieces);
  }

  #countAttachment(from: number, quote: number): void {
    const sample = this.#chunk.subarray(Math.max(0, quote - SAMPLE_BYTES), quote);
    if (!sample.every(isBase64)) return;
    this.#attachments++;
    this.#attachmentBytes += this.position - from;
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

/** Of either alphabet. */
function isBase64(byte: number): boolean {
  return (
    (byte >= 0x61 && byte <= 0x7a) ||
    (byte >= 0x41 && byte <= 0x5a) ||
    (byte >= 0x2f && byte <= 0x39) ||
    byte === 0x2b ||
    byte === 0x2d ||
    byte === 0x3d ||
    byte === 0x5f
  );
}

/** @returns the offset of the first quote from `start` that no backslash escapes, or -1. */
function findQuote(chunk: Buffer, start: number): number {
  let from = start;
  for (;;) {
    const quote = chunk.indexOf(QUOTE, from);
    if (quote === -1 || !endsEscaped(chunk, from, quote)) return quote;
    from = quote + 1;
  }
}

/** Whether the byte at `end` is escaped: an odd run of backslashes stands before it, not reaching below `start`. */
function endsEscaped(chunk: Buffer, start: number, end: number): boolean {
  let at = end;
  while (at > start && chunk[at - 1] === BACKSLASH) at--;
  return (end - at) % 2 === 1;
}
