import { basename } from "node:path";
import type { ZodType } from "zod";
import { type FileLayer, saveAtomically } from "./files.ts";

/** Contents of a record. `damaged`: a copy was unusable. */
export interface Loaded<T> {
  readonly value: T | null;
  readonly damaged: boolean;
}

export interface Recovered<T> extends Loaded<T> {
  /** Names of files that were restored from the other copy. */
  readonly restored: readonly string[];
}

/**
 * A JSON value on disk in two copies, each replaced atomically, to survive a bad sector, a truncated file or a bad edit.
 * The second copy is used only if the first is damaged.
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

  /** Loads the value and restores a lost copy. Requires the folder's lock. */
  async recover(): Promise<Recovered<T>> {
    const copies = [this.#path, this.#copy];
    const [first, second] = [await this.#read(this.#path), await this.#read(this.#copy)];
    const value = first.value ?? second.value;
    const damaged = first.damaged || second.damaged;
    const lost = value === null ? [] : copies.filter((_, index) => [first, second][index]?.value === null);
    if (value === null || lost.length === 0) return { value, damaged, restored: [] };
    try {
      await this.save(value);
    } catch {
      // The disk may be full; the next start retries from the good copy.
      return { value, damaged, restored: [] };
    }
    return { value, damaged, restored: lost.map((path) => basename(path)) };
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
    try {
      const text = await this.#files.read(path);
      if (text === null) return { value: null, damaged: false };
      const parsed = this.#schema.safeParse(JSON.parse(text));
      return parsed.success ? { value: parsed.data, damaged: false } : { value: null, damaged: true };
    } catch (error) {
      if (isOfTheSystem(error) && error.code !== "EIO") throw error;
      return { value: null, damaged: true };
    }
  }
}

function isOfTheSystem(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && "syscall" in error;
}

/** Message for the log and the node's events. */
export function restoredWords(names: readonly string[]): string {
  return `${names.join(" and ")} was damaged or missing and has been restored from its copy`;
}
