import { dirname } from "node:path";
import type { FileLayer } from "../state/files.ts";

export class PowerCut extends Error {
  constructor() {
    super("the power went out");
  }
}

/** Files in memory that know what would survive a power cut: renames and new names only after their folder was flushed. */
export class MemoryFiles implements FileLayer {
  readonly #live: Map<string, string>;
  readonly #durable: Map<string, string>;
  operations = 0;
  /** The power goes out when this many operations have been done. */
  cutAfter = Number.POSITIVE_INFINITY;
  /** The next writes fail, as on a full disk. */
  full = false;

  constructor(content: ReadonlyMap<string, string> = new Map()) {
    this.#live = new Map(content);
    this.#durable = new Map(content);
  }

  /** The machine after a power cut. `flushed`: the kernel had written the names by itself before it. */
  afterPowerCut(flushed: boolean): MemoryFiles {
    return new MemoryFiles(flushed ? this.#live : this.#durable);
  }

  paths(): string[] {
    return [...this.#live.keys()];
  }

  put(path: string, text: string): void {
    this.#live.set(path, text);
    this.#durable.set(path, text);
  }

  async read(path: string): Promise<string | null> {
    return this.#live.get(path) ?? null;
  }

  async write(path: string, text: string): Promise<void> {
    if (this.full) throw new Error("ENOSPC: no space left on device");
    // A cut in the middle of a write leaves a torn file.
    if (this.operations >= this.cutAfter) this.#live.set(path, text.slice(0, text.length / 2));
    this.#step();
    this.#live.set(path, text);
  }

  async rename(from: string, to: string): Promise<void> {
    this.#step();
    const text = this.#live.get(from);
    if (text === undefined) throw new Error(`ENOENT: ${from}`);
    this.#live.delete(from);
    this.#live.set(to, text);
  }

  async syncFolder(path: string): Promise<void> {
    this.#step();
    for (const name of this.#durable.keys()) if (dirname(name) === path) this.#durable.delete(name);
    for (const [name, text] of this.#live) if (dirname(name) === path) this.#durable.set(name, text);
  }

  async makeFolder(): Promise<void> {}

  async remove(path: string): Promise<void> {
    this.#step();
    this.#live.delete(path);
  }

  #step(): void {
    if (this.operations >= this.cutAfter) throw new PowerCut();
    this.operations += 1;
  }
}
