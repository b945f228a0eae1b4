import { mkdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { Container, ContainerRuntime } from "../runtime/container-runtime.ts";
import { entriesOf, isContainer } from "./secret-folders.ts";

export interface LeftSecretsDeps {
  /** Contains a folder per node that ran on this machine, with a folder per container. */
  readonly root: string;
  /** This node, which manages its own folder. */
  readonly nodeId: string;
  readonly runtime: Pick<ContainerRuntime, "inspect" | "version">;
  readonly clock: Pick<Clock, "now">;
}

/** The folder is created before the container. */
const COMING_MS = 60_000;
/** File in a node's folder with the ID of its container engine. */
const ENGINE_FILE = ".engine";

/** Secrets left on this machine by other nodes that were removed or stopped. */
export class LeftSecrets {
  readonly #deps: LeftSecretsDeps;

  constructor(deps: LeftSecretsDeps) {
    this.#deps = deps;
  }

  /** Removes those whose container no longer runs. @throws RuntimeError if the engine does not respond */
  async remove(): Promise<void> {
    const { root, nodeId, runtime } = this.#deps;
    const { id } = await runtime.version();
    const own = join(root, nodeId);
    await mkdir(own, { recursive: true, mode: 0o700 });
    await writeFile(join(own, ENGINE_FILE), id);
    for (const node of await entriesOf(root)) {
      if (node !== nodeId) await this.#removeOf(join(root, node), id);
    }
  }

  async #removeOf(folder: string, engine: string): Promise<void> {
    const mark = join(folder, ENGINE_FILE);
    // Containers of another engine are unknown here.
    if ((await readFile(mark, "utf8").catch(() => null)) !== engine) return;
    let kept = 0;
    for (const name of (await entriesOf(folder)).filter(isContainer)) {
      if (await this.#isLeft(join(folder, name), name)) await rm(join(folder, name), { recursive: true });
      else kept += 1;
    }
    if (kept === 0) await rm(folder, { recursive: true });
  }

  async #isLeft(folder: string, name: string): Promise<boolean> {
    const { runtime, clock } = this.#deps;
    const container = await runtime.inspect(name);
    if (container !== null && !hasEnded(container)) return false;
    return clock.now() - (await stat(folder)).mtimeMs > COMING_MS;
  }
}

/** Whether the container has stopped; it may be restarted. */
export function hasEnded({ state }: Pick<Container, "state">): boolean {
  return state === "exited" || state === "dead";
}
