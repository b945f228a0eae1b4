import { dirname } from "node:path";
import type { FileLayer } from "../state/files.ts";

export class PowerCut extends Error {
  constructor() {
    super("the power went out");
  }
}

/** What one operation did to a folder's names; before the folder is flushed, a power cut may take it back. */
interface Effect {
  readonly folder: string;
  readonly apply: (files: Map<string, string>) => void;
}

/** What the disk makes of everything that was not flushed. */
export interface Fate {
  /** Whether the effect of this index, counted from the oldest that was not flushed, is there after the cut. */
  readonly survives: (effect: number) => boolean;
  /** How much of a file is there whose writing was under way, from 0 to 1. */
  readonly written: number;
}

export const NOTHING_SURVIVES: Fate = { survives: () => false, written: 0 };
export const ALL_SURVIVES: Fate = { survives: () => true, written: 0.5 };

/**
 * Files in memory, of a machine whose power may go out after any single operation and in the middle of a write. A file's content
 * is safe once it is written; its name, a rename or a removal only once the folder was flushed, and before that each by itself.
 */
export class MemoryFiles implements FileLayer {
  readonly #live: Map<string, string>;
  readonly #durable: Map<string, string>;
  #pending: Effect[] = [];
  #torn: { readonly path: string; readonly text: string } | null = null;
  operations = 0;
  /** The power goes out when this many operations have been done. */
  cutAfter = Number.POSITIVE_INFINITY;
  /** The next writes fail, as on a full disk. */
  full = false;

  constructor(content: ReadonlyMap<string, string> = new Map()) {
    this.#live = new Map(content);
    this.#durable = new Map(content);
  }

  /** The machine after a power cut. */
  afterPowerCut({ survives, written }: Fate): MemoryFiles {
    const files = new Map(this.#durable);
    for (const [index, effect] of this.#pending.entries()) if (survives(index)) effect.apply(files);
    if (this.#torn !== null && survives(this.#pending.length)) {
      const { path, text } = this.#torn;
      files.set(path, text.slice(0, Math.floor(text.length * written)));
    }
    return new MemoryFiles(files);
  }

  /** How many effects a power cut could take back now. */
  get unflushed(): number {
    return this.#pending.length + (this.#torn === null ? 0 : 1);
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
    if (this.operations === this.cutAfter) this.#torn = { path, text };
    this.#do({ folder: dirname(path), apply: (files) => void files.set(path, text) });
  }

  async rename(from: string, to: string): Promise<void> {
    const text = this.#live.get(from);
    if (text === undefined) throw new Error(`ENOENT: ${from}`);
    const apply = (files: Map<string, string>): void => {
      files.delete(from);
      files.set(to, text);
    };
    this.#do({ folder: dirname(to), apply });
  }

  async syncFolder(path: string): Promise<void> {
    this.#step();
    for (const effect of this.#pending) if (effect.folder === path) effect.apply(this.#durable);
    this.#pending = this.#pending.filter((effect) => effect.folder !== path);
  }

  async makeFolder(): Promise<void> {}

  async remove(path: string): Promise<void> {
    this.#do({ folder: dirname(path), apply: (files) => void files.delete(path) });
  }

  #do(effect: Effect): void {
    this.#step();
    effect.apply(this.#live);
    this.#pending.push(effect);
  }

  #step(): void {
    if (this.operations >= this.cutAfter) throw new PowerCut();
    this.operations += 1;
  }
}
