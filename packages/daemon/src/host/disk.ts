import { statfs } from "node:fs/promises";
import { dirname } from "node:path";
import type { Clock } from "@fairlead/protocol/values/clock";
import { RuntimeError } from "../runtime/container-runtime.ts";
import { type DiskSpace, roomProblem } from "./disk-rules.ts";

/** The file system of a folder or its nearest existing parent; null if unknown. */
export async function readDiskSpace(folder: string): Promise<DiskSpace | null> {
  try {
    const { blocks, bavail, bfree, bsize } = await statfs(folder);
    // Blocks reserved for root are not available for images.
    return { totalBytes: (blocks - bfree + bavail) * bsize, freeBytes: bavail * bsize };
  } catch (error) {
    const missing = error instanceof Error && "code" in error && error.code === "ENOENT";
    return missing && folder !== dirname(folder) ? readDiskSpace(dirname(folder)) : null;
  }
}

export interface DiskRoomDeps {
  readonly readSpace: () => Promise<DiskSpace | null>;
  readonly clock: Clock;
  /** A pull was rejected for lack of space. */
  readonly onRefused: () => void;
}

/** Limits how often progress events check the disk. */
const FRESH_MS = 1000;
/** A rejection is forgotten after this time. */
const REFUSAL_MS = 10 * 60_000;

/** The free-space floor: pulls are rejected before the disk is full (amazon-ecs-agent#632). */
export class DiskRoom {
  readonly #deps: DiskRoomDeps;
  #read: { readonly at: number; readonly space: Promise<DiskSpace | null> } | null = null;
  #refused: { readonly at: number; readonly message: string } | null = null;

  constructor(deps: DiskRoomDeps) {
    this.#deps = deps;
  }

  /** @throws RuntimeError `no-room`. Accepts everything if the free space is unknown. */
  readonly require = async (pendingBytes: number): Promise<void> => {
    const space = await this.#space();
    const problem = space && roomProblem(space, pendingBytes);
    if (!problem) return;
    this.#refused = { at: this.#deps.clock.monotonic(), message: problem };
    this.#deps.onRefused();
    throw new RuntimeError("no-room", problem);
  };

  /** Message of the last rejection, until a pull succeeds or some time has passed. */
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
