const MAX_STREAM_ID = 0xffff_ffff;

/** The ids of the streams that one side opens: odd ones, over and over. What is closed is forgotten. */
export class StreamIds {
  #next: number;

  constructor(first = 1) {
    this.#next = first;
  }

  /** @returns the next one that no open stream has */
  take(open: { has(id: number): boolean }): number {
    while (open.has(this.#next)) this.#countUp();
    const id = this.#next;
    this.#countUp();
    return id;
  }

  #countUp(): void {
    this.#next = this.#next >= MAX_STREAM_ID - 1 ? 1 : this.#next + 2;
  }
}
