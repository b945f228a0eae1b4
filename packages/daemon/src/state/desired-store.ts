import { join } from "node:path";
import { type DesiredState, desiredStateSchema, WORKLOAD_TYPE_AGENT } from "@fairlead/protocol/workload";
import { z } from "zod";
import { DurableRecord, type Recovered } from "./durable-record.ts";
import type { FileLayer } from "./files.ts";

const storedSchema = desiredStateSchema.extend({ leaving: z.array(z.string()).optional() });
type Stored = z.infer<typeof storedSchema>;

export type Acceptance = "accepted" | "unchanged" | "older" | "another-node";

/**
 * The last accepted desired state, ordered by (epoch, generation): an older generation of the same epoch is rejected; another
 * epoch means a restored store and is accepted.
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

  /** Loads the saved state. @returns whether a copy was damaged. */
  async load(): Promise<{ damaged: boolean }> {
    const { value, damaged } = await this.#record.load();
    this.#take(value);
    return { damaged };
  }

  /** Like `load`, but also restores a lost copy. Requires the folder's lock. */
  async recover(): Promise<Pick<Recovered<unknown>, "damaged" | "restored">> {
    const { value, damaged, restored } = await this.#record.recover();
    this.#take(value);
    return { damaged, restored };
  }

  /** Ignores the state of another node, left in the folder after re-enrolment. */
  #take(value: Stored | null): void {
    if (value?.nodeId !== this.#nodeId) return;
    const { leaving = [], ...state } = value;
    this.#current = state;
    this.#leaving = new Set(leaving);
  }

  current(): DesiredState | null {
    return this.#current;
  }

  /** Agents of earlier states that may still run, reported until they are known to be gone. */
  leaving(): ReadonlySet<string> {
    return this.#leaving;
  }

  /** Updates the list after an observation. Not saved: reporting too many agents is safe, too few is not. */
  seen(leaving: ReadonlySet<string>): void {
    this.#leaving = leaving;
  }

  /** Accepts a state unless it is older or for another node, even if saving it fails. */
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

  /** Saves the accepted state if needed. The caller retries failures such as a full disk. */
  async save(): Promise<void> {
    const state = this.#current;
    if (this.#saved || state === null) return;
    await this.#record.save(this.#leaving.size === 0 ? state : { ...state, leaving: [...this.#leaving] });
    if (this.#current === state) this.#saved = true;
  }
}
