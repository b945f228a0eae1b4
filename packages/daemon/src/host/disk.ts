import { statfs } from "node:fs/promises";
import { dirname } from "node:path";
import type { Clock } from "@fairlead/protocol/clock";
import { RuntimeError } from "../runtime/container-runtime.ts";
import { type DiskSpace, roomProblem } from "./disk-rules.ts";

/** The file system that holds a folder, or the nearest folder above it that is there; null where that cannot be told. */
export async function readDiskSpace(folder: string): Promise<DiskSpace | null> {
  try {
    const { blocks, bavail, bfree, bsize } = await statfs(folder);
    // What is kept back for root is no room for images.
    return { totalBytes: (blocks - bfree + bavail) * bsize, freeBytes: bavail * bsize };
  } catch (error) {
    const missing = error instanceof Error && "code" in error && error.code === "ENOENT";
    return missing && folder !== dirname(folder) ? readDiskSpace(dirname(folder)) : null;
  }
}

export interface DiskRoomDeps {
  readonly readSpace: () => Promise<DiskSpace | null>;
  readonly clock: Clock;
  /** A pull has just been refused for want of room. */
  readonly onRefused: () => void;
}

/** Progress comes many times a second, and a disk does not fill that fast. */
const FRESH_MS = 1000;
/** A refusal that nobody repeats is over. */
const REFUSAL_MS = 10 * 60_000;

/** The free-space floor: what would break it is refused before the disk is full, where nothing works any more (amazon-ecs-agent#632). */
export class DiskRoom {
  readonly #deps: DiskRoomDeps;
  #read: { readonly at: number; readonly space: Promise<DiskSpace | null> } | null = null;
  #refused: { readonly at: number; readonly message: string } | null = null;

  constructor(deps: DiskRoomDeps) {
    this.#deps = deps;
  }

  /** @throws RuntimeError `no-room`. Where the space cannot be told nothing is refused. */
  readonly require = async (pendingBytes: number): Promise<void> => {
    const space = await this.#space();
    const problem = space && roomProblem(space, pendingBytes);
    if (!problem) return;
    this.#refused = { at: this.#deps.clock.monotonic(), message: problem };
    this.#deps.onRefused();
    throw new RuntimeError("no-room", problem);
  };

  /** What the last refusal said, until a pull has come through or nobody has tried for a while. */
  get refusal(): string | null {
    const refused = this.#refused;
    return refused !== null && this.#deps.clock.monotonic() - refused.at < REFUSAL_MS ? refused.message : null;
  }

  pulled(): void {
    this.#refused = null;
  }

  #space(): Promise<DiskSpace | null> {
    const now = this.#deps.clock.monotonic();
    if (this.#read === null || now - this.#read.at >= FRESH_MS) this.#read = { at: now, space: this.#deps.readSpace() };
    return this.#read.space;
  }
}
