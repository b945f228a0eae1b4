/** Something that is on a roster for a while. */
export interface Listed {
  /** Its place; kept by the roster. */
  place: number;
}

/** What is looked at from time to time. An array: the tables that a Set outgrows keep what has left in memory until a full collection. */
export class Roster<T extends Listed> {
  readonly #listed: T[] = [];

  get size(): number {
    return this.#listed.length;
  }

  add(item: T): void {
    item.place = this.#listed.push(item) - 1;
  }

  delete(item: T): void {
    if (this.#listed[item.place] !== item) return;
    const last = this.#listed.pop();
    if (last === undefined || last === item) return;
    last.place = item.place;
    this.#listed[item.place] = last;
  }

  some(test: (item: T) => boolean): boolean {
    return this.#listed.some(test);
  }

  /** Backwards: one that leaves meanwhile gives its place to the last one. */
  each(visit: (item: T) => void): void {
    for (let at = this.#listed.length - 1; at >= 0; at--) {
      const item = this.#listed[at];
      if (item !== undefined) visit(item);
    }
  }
}
