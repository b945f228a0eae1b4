import type { EventSpec } from "../dialect-spec.ts";
import { DIALECT_SPECS } from "../dialect-specs.ts";
import type { Dialect } from "./dialect.ts";
import { BYTES_PER_TOKEN } from "./token-usage.ts";

const DELTA = Buffer.from('"delta":');

/**
 * Measures a stream's progress without parsing it: the time of the first token, and a token estimate for streams that end before
 * the upstream reports usage.
 */
export class OutputMeter {
  readonly #events: EventSpec;
  readonly #now: () => number;
  #deltas = 0;
  #bytes = 0;
  #firstTokenAt: number | null = null;

  /** @param now monotonic milliseconds. */
  constructor(dialect: Dialect, now: () => number) {
    this.#events = DIALECT_SPECS[dialect].events;
    this.#now = now;
  }

  get firstTokenAt(): number | null {
    return this.#firstTokenAt;
  }

  /** An estimate: at least one token per delta, and one per four bytes of text. */
  get tokens(): number {
    return Math.max(this.#deltas, Math.ceil(this.#bytes / BYTES_PER_TOKEN));
  }

  /** @param bytes complete events. */
  push(bytes: Buffer): void {
    const events = this.#events;
    let at = bytes.indexOf(DELTA);
    while (at !== -1) {
      const start = at + DELTA.length;
      const end = events.deltaEnd(bytes, start);
      const textBytes = events.deltaTextBytes(bytes, start, end);
      if (textBytes > 0) this.#add(textBytes);
      at = bytes.indexOf(DELTA, end);
    }
  }

  #add(textBytes: number): void {
    this.#firstTokenAt ??= this.#now();
    this.#deltas++;
    this.#bytes += textBytes;
  }
}
