/** Detects base64 in JSON strings. Linear in the bytes, which arrive in pieces. */

const COMMA = 0x2c;
const EQUALS = 0x3d;
const SLASH = 0x2f;
const BACKSLASH = 0x5c;
const GROUP = 4;
const MAX_PADDING = 2;
/** Some JSON writers escape slashes. */
const DATA_URL = /^data:[\w.+-]+\\?\/[\w.+-]+(?:;[\w.+=-]+)*;base64,$/i;
const MAX_DATA_URL_HEAD = 256;

/** Decoding blocks of this many bytes is several times faster than checking each byte. */
const BLOCK = 4096;
const DECODED_BLOCK = (BLOCK / GROUP) * 3;

/** @param pieces a JSON string without its quotes. @returns whether all of it is base64, or a base64 `data:` URL. */
export function isBase64(pieces: readonly Buffer[]): boolean {
  const text = new Base64Text();
  const head = headBytes(pieces);
  if (head === null) return false;
  let skip = head;
  for (const piece of pieces) {
    if (!text.push(skip === 0 ? piece : piece.subarray(skip))) return false;
    skip = Math.max(0, skip - piece.length);
  }
  return text.isComplete;
}

/** @returns the length of a `data:` URL's prefix, 0 if it has none; null for a `data:` URL that is not base64. */
function headBytes(pieces: readonly Buffer[]): number | null {
  const first = pieces[0] ?? Buffer.alloc(0);
  const start = first.length >= MAX_DATA_URL_HEAD ? first : Buffer.concat(pieces.slice(0, MAX_DATA_URL_HEAD));
  const comma = start.subarray(0, MAX_DATA_URL_HEAD).indexOf(COMMA);
  if (comma === -1) return 0;
  return DATA_URL.test(start.toString("latin1", 0, comma + 1)) ? comma + 1 : null;
}

class Base64Text {
  #characters = 0;
  #padding = 0;
  #escaped = false;

  /** @returns false once the bytes cannot be base64. */
  push(bytes: Buffer): boolean {
    for (let at = 0; at < bytes.length; ) {
      const end = at + BLOCK;
      if (end <= bytes.length && !this.#escaped && this.#padding === 0 && isAlphabet(bytes, at)) {
        this.#characters += BLOCK;
        at = end;
        continue;
      }
      // Each byte is checked at most twice, whatever is between them.
      for (const last = Math.min(end, bytes.length); at < last; at++) if (!this.#add(bytes[at] ?? 0)) return false;
    }
    return true;
  }

  get isComplete(): boolean {
    if (this.#escaped || this.#characters === 0) return false;
    const last = this.#characters % GROUP;
    return this.#padding === 0 ? last !== 1 : (last + this.#padding) % GROUP === 0;
  }

  #add(byte: number): boolean {
    if (this.#escaped) {
      this.#escaped = false;
      this.#characters++;
      return byte === SLASH;
    }
    if (byte === EQUALS) return ++this.#padding <= MAX_PADDING;
    if (this.#padding > 0) return false;
    if (byte === BACKSLASH) this.#escaped = true;
    else this.#characters++;
    return this.#escaped || isInAlphabet(byte);
  }
}

const decoded = Buffer.alloc(DECODED_BLOCK);

/** Whether a block is entirely base64: the decoder skips all other bytes. */
function isAlphabet(bytes: Buffer, start: number): boolean {
  return decoded.write(bytes.toString("latin1", start, start + BLOCK), "base64") === DECODED_BLOCK;
}

/** Of the standard or the URL-safe alphabet. */
function isInAlphabet(byte: number): boolean {
  return (
    (byte >= 0x61 && byte <= 0x7a) ||
    (byte >= 0x41 && byte <= 0x5a) ||
    (byte >= 0x2f && byte <= 0x39) ||
    byte === 0x2b ||
    byte === 0x2d ||
    byte === 0x5f
  );
}
