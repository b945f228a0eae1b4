/** What is read from the store once: from then on this process is the one that changes it. */
export class ReadOnce<T> {
  readonly #read: (id: string) => Promise<T>;
  readonly #known = new Map<string, T>();
  readonly #reading = new Map<string, Promise<T>>();

  constructor(read: (id: string) => Promise<T>) {
    this.#read = read;
  }

  known(id: string): T | null {
    return this.#known.get(id) ?? null;
  }

  /** Many at once make one reading; one that failed is tried again by the next. @throws what `read` does. */
  get(id: string): Promise<T> {
    const known = this.#known.get(id);
    if (known !== undefined) return Promise.resolve(known);
    const reading = this.#reading.get(id) ?? this.#begin(id);
    this.#reading.set(id, reading);
    return reading;
  }

  async #begin(id: string): Promise<T> {
    try {
      const value = await this.#read(id);
      this.#known.set(id, value);
      return value;
    } finally {
      this.#reading.delete(id);
    }
  }
}
