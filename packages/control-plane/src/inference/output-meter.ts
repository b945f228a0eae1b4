import type { Dialect } from "./dialect.ts";
import { BYTES_PER_TOKEN } from "./token-usage.ts";

const DELTA = Buffer.from('"delta":');
const QUOTE = 0x22;
const CLOSE_BRACE = 0x7d;
/** What a delta of the chat dialect consists of beside its text. */
const EMPTY_CHAT_DELTA = '{"content":""'.length;
/** A delta's text, as against its role, its index or its type. */
const CHAT_TEXT = /"(?:content|reasoning_content|reasoning|refusal|arguments|name)"\s*:\s*"[^"]/;

/**
 * Follows how much a stream has brought, without parsing it: the time of its first token, and an estimate of its tokens for
 * streams that end before their upstream tells the usage.
 */
export class OutputMeter {
  readonly #dialect: Dialect;
  readonly #now: () => number;
  #deltas = 0;
  #bytes = 0;
  #firstTokenAt: number | null = null;

  /** @param now monotonic milliseconds. */
  constructor(dialect: Dialect, now: () => number) {
    this.#dialect = dialect;
    this.#now = now;
  }

  get firstTokenAt(): number | null {
    return this.#firstTokenAt;
  }

  /** An estimate: a delta is a token at least, and about four bytes of text are one. */
  get tokens(): number {
    return Math.max(this.#deltas, Math.ceil(this.#bytes / BYTES_PER_TOKEN));
  }

  /** @param bytes whole events. */
  push(bytes: Buffer): void {
    let at = bytes.indexOf(DELTA);
    while (at !== -1) {
      const start = at + DELTA.length;
      const end = this.#dialect === "chat" ? endOf(bytes, CLOSE_BRACE, start) : textEnd(bytes, start);
      const textBytes = this.#dialect === "chat" ? end - start - EMPTY_CHAT_DELTA : end - start - 1;
      if (textBytes > 0) this.#add(bytes.subarray(start, end), textBytes);
      at = bytes.indexOf(DELTA, end);
    }
  }

  #add(delta: Buffer, textBytes: number): void {
    if (this.#firstTokenAt === null) {
      // Upstreams of the chat dialect begin with the role alone.
      if (this.#dialect === "chat" && !CHAT_TEXT.test(delta.toString("latin1"))) return;
      this.#firstTokenAt = this.#now();
    }
    this.#deltas++;
    this.#bytes += textBytes;
  }
}

function endOf(bytes: Buffer, byte: number, from: number): number {
  const at = bytes.indexOf(byte, from);
  return at === -1 ? bytes.length : at;
}

/** The end of the text that a delta of the responses dialect is. */
function textEnd(bytes: Buffer, start: number): number {
  return endOf(bytes, QUOTE, endOf(bytes, QUOTE, start) + 1);
}
