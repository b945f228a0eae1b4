import type { ZodType } from "zod";
import { type FileLayer, saveAtomically } from "./files.ts";

/** What stands in a record: `damaged` says that a copy was there and could not be used. */
export interface Loaded<T> {
  readonly value: T | null;
  readonly damaged: boolean;
}

/**
 * One JSON value on disk in two copies, each replaced atomically. The second is read only when the first is damaged, so a
 * bad sector or a hand edit costs nothing.
 */
export class DurableRecord<T> {
  readonly #files: FileLayer;
  readonly #path: string;
  readonly #schema: ZodType<T>;

  constructor(files: FileLayer, path: string, schema: ZodType<T>) {
    this.#files = files;
    this.#path = path;
    this.#schema = schema;
  }

  async load(): Promise<Loaded<T>> {
    const first = await this.#read(this.#path);
    if (first.value !== null) return first;
    const second = await this.#read(this.#copy);
    return { value: second.value, damaged: first.damaged || second.damaged };
  }

  async save(value: T): Promise<void> {
    const text = `${JSON.stringify(value, null, 2)}\n`;
    await saveAtomically(this.#files, this.#path, text);
    await saveAtomically(this.#files, this.#copy, text);
  }

  get #copy(): string {
    return `${this.#path}.copy`;
  }

  async #read(path: string): Promise<Loaded<T>> {
    const text = await this.#files.read(path);
    if (text === null) return { value: null, damaged: false };
    try {
      const parsed = this.#schema.safeParse(JSON.parse(text));
      return parsed.success ? { value: parsed.data, damaged: false } : { value: null, damaged: true };
    } catch {
      return { value: null, damaged: true };
    }
  }
}
