import { join } from "node:path";
import { type DesiredState, desiredStateSchema } from "@fairlead/protocol/workload";
import { DurableRecord } from "./durable-record.ts";
import type { FileLayer } from "./files.ts";

export type Acceptance = "accepted" | "unchanged" | "older" | "another-node";

/**
 * The last accepted desired state. Ordered by (epoch, generation): an older generation of the same epoch is refused, another
 * epoch is a restored store and is followed (design §6).
 */
export class DesiredStore {
  readonly #record: DurableRecord<DesiredState>;
  readonly #nodeId: string;
  #current: DesiredState | null = null;
  #saved = true;

  constructor(files: FileLayer, options: { folder: string; nodeId: string }) {
    this.#record = new DurableRecord(files, join(options.folder, "desired.json"), desiredStateSchema);
    this.#nodeId = options.nodeId;
  }

  /** Reads what a former run accepted. @returns whether a copy was damaged. */
  async load(): Promise<{ damaged: boolean }> {
    const { value, damaged } = await this.#record.load();
    // A state folder may outlive its node's identity; another node's workloads are not this one's.
    this.#current = value?.nodeId === this.#nodeId ? value : null;
    return { damaged };
  }

  current(): DesiredState | null {
    return this.#current;
  }

  /** Takes a state over, unless it is older or not for this node. It holds from now on even where saving it fails. */
  offer(state: DesiredState): Acceptance {
    if (state.nodeId !== this.#nodeId) return "another-node";
    const current = this.#current;
    if (current?.epoch === state.epoch) {
      if (state.generation < current.generation) return "older";
      if (state.generation === current.generation) return "unchanged";
    }
    this.#current = state;
    this.#saved = false;
    return "accepted";
  }

  /** Writes the accepted state to disk where it is not there yet. A failure (a full disk) is the caller's to retry. */
  async save(): Promise<void> {
    const state = this.#current;
    if (this.#saved || state === null) return;
    await this.#record.save(state);
    if (this.#current === state) this.#saved = true;
  }
}
