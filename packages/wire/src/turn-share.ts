import type { Duplex } from "node:stream";

/** The most that Node reads from a socket in one call. */
const FULL_READ_BYTES = 65_536;
const MAX_FULL_READS = 2;

/**
 * Limits a fast peer to its share of an event-loop turn. Node reads a busy socket up to 32 times before running anything else, and
 * two megabytes of small events take a second to process.
 */
export class TurnShare {
  readonly #socket: Duplex;
  readonly #mayResume: () => boolean;
  #fullReads = 0;
  #waiting = false;

  /** @param mayResume whether nothing else keeps the socket paused. */
  constructor(socket: Duplex, mayResume: () => boolean) {
    this.#socket = socket;
    this.#mayResume = mayResume;
  }

  /** Whether the socket is paused until the next turn. */
  get isSpent(): boolean {
    return this.#waiting;
  }

  /** Called after each read. */
  took(bytes: number): void {
    this.#fullReads = bytes < FULL_READ_BYTES ? 0 : this.#fullReads + 1;
    if (this.#fullReads < MAX_FULL_READS || this.#waiting || this.#socket.destroyed) return;
    this.#waiting = true;
    this.#socket.pause();
    setImmediate(() => {
      this.#waiting = false;
      this.#fullReads = 0;
      if (this.#mayResume()) this.#socket.resume();
    });
  }
}
