import type { Clock } from "@fairlead/protocol/clock";
import type { NodeStatus } from "@fairlead/protocol/resources";
import type { Logger } from "pino";
import type { NodeStatusService } from "./node-status-service.ts";
import type { NodeStores } from "./node-stores.ts";

export interface LivenessOptions {
  /** The fleet's heartbeats a second, in all; the interval grows with the fleet to stay below it. */
  readonly heartbeatsPerSecond: number;
  readonly minHeartbeatSeconds: number;
  /** Missed heartbeats after which a node is unreachable. */
  readonly missedBeats: number;
  /** When more than this share of at least `brakeNodes` nodes goes quiet together, we suspect ourselves (gpustack/gpustack#5935). */
  readonly brakeShare: number;
  readonly brakeNodes: number;
}

export const DEFAULT_LIVENESS: LivenessOptions = {
  heartbeatsPerSecond: 50,
  minHeartbeatSeconds: 10,
  missedBeats: 3,
  brakeShare: 0.5,
  brakeNodes: 3,
};

export interface LivenessDeps {
  readonly stores: NodeStores;
  readonly status: NodeStatusService;
  readonly clock: Clock;
  readonly log: Logger;
  readonly options: LivenessOptions;
}

const HEARD_STATUSES: readonly NodeStatus[] = ["starting", "active", "degraded"];

/** When each daemon was last heard, by our own monotonic clock: theirs may be wrong. Written to the store in batches. */
export class NodeLiveness {
  readonly #deps: LivenessDeps;
  readonly #heardAt = new Map<string, number>();
  readonly #unsaved = new Map<string, number>();
  /** A node that was not heard since this start gets its grace from here. */
  readonly #startedAt: number;
  #braked = false;

  constructor(deps: LivenessDeps) {
    this.#deps = deps;
    this.#startedAt = deps.clock.monotonic();
  }

  heard(nodeId: string): void {
    this.#heardAt.set(nodeId, this.#deps.clock.monotonic());
    this.#unsaved.set(nodeId, this.#deps.clock.now());
  }

  forget(nodeId: string): void {
    this.#heardAt.delete(nodeId);
    this.#unsaved.delete(nodeId);
  }

  /** Seconds between two heartbeats of one daemon, for the fleet's present size. */
  heartbeatSeconds(): number {
    const { minHeartbeatSeconds, heartbeatsPerSecond } = this.#deps.options;
    return Math.max(minHeartbeatSeconds, Math.ceil(this.#heardAt.size / heartbeatsPerSecond));
  }

  /** Stores who was heard, then marks who went quiet. One call at a time; the caller paces it. */
  async sweep(): Promise<void> {
    await this.flush();
    const expected = await this.#deps.stores.nodes.listByStatus(HEARD_STATUSES);
    const quiet = expected.filter((node) => this.#isQuiet(node.id));
    if (this.#suspectOurselves(quiet.length, expected.length)) return;
    for (const node of quiet) {
      await this.#deps.status.apply(
        node.id,
        "went_quiet",
        "The daemon has not been heard; its workloads may still run.",
      );
    }
  }

  async flush(): Promise<void> {
    if (this.#unsaved.size === 0) return;
    const batch = new Map(this.#unsaved);
    this.#unsaved.clear();
    await this.#deps.stores.nodes.setLastSeen(batch);
  }

  #isQuiet(nodeId: string): boolean {
    const since = this.#deps.clock.monotonic() - (this.#heardAt.get(nodeId) ?? this.#startedAt);
    return since > this.heartbeatSeconds() * this.#deps.options.missedBeats * 1000;
  }

  #suspectOurselves(quiet: number, expected: number): boolean {
    const { brakeNodes, brakeShare } = this.#deps.options;
    const braked = quiet >= brakeNodes && quiet > expected * brakeShare;
    if (braked !== this.#braked) {
      this.#braked = braked;
      this.#deps.log.warn(
        { quiet, expected, braked },
        braked ? "most nodes went quiet at once: no status is changed" : "nodes are heard again",
      );
    }
    return braked;
  }
}
