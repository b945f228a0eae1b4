import { join } from "node:path";
import { type DesiredState, desiredStateSchema, WORKLOAD_TYPE_AGENT } from "@fairlead/protocol/workload";
import { z } from "zod";
import { DurableRecord } from "./durable-record.ts";
import type { FileLayer } from "./files.ts";

const storedSchema = desiredStateSchema.extend({ leaving: z.array(z.string()).optional() });
type Stored = z.infer<typeof storedSchema>;

export type Acceptance = "accepted" | "unchanged" | "older" | "another-node";

/**
 * The last accepted desired state. Ordered by (epoch, generation): an older generation of the same epoch is refused, another
 * epoch is a restored store and is followed (design §6).
 */
export class DesiredStore {
  readonly #record: DurableRecord<Stored>;
  readonly #nodeId: string;
  #current: DesiredState | null = null;
  #leaving: ReadonlySet<string> = new Set();
  #saved = true;

  constructor(files: FileLayer, options: { folder: string; nodeId: string }) {
    this.#record = new DurableRecord(files, join(options.folder, "desired.json"), storedSchema);
    this.#nodeId = options.nodeId;
  }

  /** Reads what a former run accepted. @returns whether a copy was damaged. */
  async load(): Promise<{ damaged: boolean }> {
    const { value, damaged } = await this.#record.load();
    // A state folder may outlive its node's identity; another node's workloads are not this one's.
    if (value?.nodeId !== this.#nodeId) return { damaged };
    const { leaving = [], ...state } = value;
    this.#current = state;
    this.#leaving = new Set(leaving);
    return { damaged };
  }

  current(): DesiredState | null {
    return this.#current;
  }

  /** Agents of states before this one that may still run: they are told of until they were seen to be gone. */
  leaving(): ReadonlySet<string> {
    return this.#leaving;
  }

  /** The container engine has shown which of them there still are. It need not be saved: too many are told of, never too few. */
  seen(leaving: ReadonlySet<string>): void {
    this.#leaving = leaving;
  }

  /** Takes a state over, unless it is older or not for this node. It holds from now on even where saving it fails. */
  offer(state: DesiredState): Acceptance {
    if (state.nodeId !== this.#nodeId) return "another-node";
    const current = this.#current;
    if (current?.epoch === state.epoch) {
      if (state.generation < current.generation) return "older";
      if (state.generation === current.generation) return "unchanged";
    }
    const agents = current?.workloads.filter((spec) => spec.workloadType === WORKLOAD_TYPE_AGENT) ?? [];
    const before = [...this.#leaving, ...agents.map((spec) => spec.workloadId)];
    const wanted = new Set(state.workloads.map((spec) => spec.workloadId));
    this.#leaving = new Set(before.filter((workloadId) => !wanted.has(workloadId)));
    this.#current = state;
    this.#saved = false;
    return "accepted";
  }

  /** Writes the accepted state to disk where it is not there yet. A failure (a full disk) is the caller's to retry. */
  async save(): Promise<void> {
    const state = this.#current;
    if (this.#saved || state === null) return;
    await this.#record.save(this.#leaving.size === 0 ? state : { ...state, leaving: [...this.#leaving] });
    if (this.#current === state) this.#saved = true;
  }
}
