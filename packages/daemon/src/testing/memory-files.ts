import { dirname } from "node:path";
import type { FileLayer } from "../state/files.ts";

export class PowerCut extends Error {
  constructor() {
    super("the power went out");
  }
}

/** An operation's effect on a folder's entries; a power cut may undo it before the folder is flushed. */
interface Effect {
  readonly folder: string;
  readonly apply: (files: Map<string, string>) => void;
}

/** Decides what survives of unflushed changes. */
export interface Fate {
  /** Whether the effect with this index, counted from the oldest unflushed one, survives the cut. */
  readonly survives: (effect: number) => boolean;
  /** The share of an interrupted write that survives, from 0 to 1. */
  readonly written: number;
}

export const NOTHING_SURVIVES: Fate = { survives: () => false, written: 0 };
export const ALL_SURVIVES: Fate = { survives: () => true, written: 0.5 };

/**
 * In-memory files of a machine that may lose power after any operation or during a write. A file's content
 * is safe once written. New names, renames and removals are safe only after the folder is flushed; before, each may be lost independently.
 */
export class MemoryFiles implements FileLayer {
  readonly #live: Map<string, string>;
  readonly #durable: Map<string, string>;
  #pending: Effect[] = [];
  #torn: { readonly path: string; readonly text: string } | null = null;
  operations = 0;
  /** Cuts the power after this many operations. */
  cutAfter = Number.POSITIVE_INFINITY;
  /** Fails the next writes, as on a full disk. */
  full = false;

  constructor(content: ReadonlyMap<string, string> = new Map()) {
    this.#live = new Map(content);
    this.#durable = new Map(content);
  }

  /** The files after a power cut. */
  afterPowerCut({ survives, written }: Fate): MemoryFiles {
    const files = new Map(this.#durable);
    for (const [index, effect] of this.#pending.entries()) if (survives(index)) effect.apply(files);
    if (this.#torn !== null && survives(this.#pending.length)) {
      const { path, text } = this.#torn;
      files.set(path, text.slice(0, Math.floor(text.length * written)));
    }
    return new MemoryFiles(files);
  }

  /** Number of effects that a power cut could undo now. */
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
