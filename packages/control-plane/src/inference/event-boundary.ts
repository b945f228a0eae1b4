const LF = 0x0a;
const CR = 0x0d;

/** Knows whether an event stream stands between two events, from its last three bytes alone. */
export class EventBoundary {
  /** The last three bytes, the newest lowest. A stream begins at a boundary. */
  #tail = (LF << 8) | LF;

  push(chunk: Buffer): void {
    for (let at = Math.max(0, chunk.length - 3); at < chunk.length; at++) {
      this.#tail = ((this.#tail << 8) | (chunk[at] ?? 0)) & 0xffffff;
    }
  }

  /** Line ends are LF, CR or CRLF; an event ends with an empty line. */
  get reached(): boolean {
    const last = this.#tail & 0xff;
    const before = (this.#tail >> 8) & 0xff;
    if (last === CR) return before === CR;
    if (last !== LF) return false;
    if (before !== CR) return before === LF;
    const third = this.#tail >> 16;
    return third === LF || third === CR;
  }
}
