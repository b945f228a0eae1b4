import type { Clock } from "@fairlead/protocol/clock";
import type { HeartbeatAnswer } from "@fairlead/protocol/daemon-link";
import type { NodeStatus } from "@fairlead/protocol/resources";
import type { Logger } from "pino";
import type { WriteTogether } from "../db/opened-handle.ts";
import { Distribution } from "../distribution.ts";
import { type FleetRules, type FleetState, firstFleetState, judgeFleet, type WatchedNode } from "./fleet-rules.ts";
import type { NodeStatusService } from "./node-status-service.ts";
import type { NodeStores } from "./node-stores.ts";

export interface LivenessOptions extends FleetRules {
  /** The fleet's heartbeats a second, in all; the interval grows with the fleet to stay below it. */
  readonly heartbeatsPerSecond: number;
  readonly minHeartbeatSeconds: number;
}

export const DEFAULT_LIVENESS: LivenessOptions = {
  heartbeatsPerSecond: 50,
  minHeartbeatSeconds: 10,
  missedBeats: 3,
  brakeShare: 0.5,
  brakeNodes: 3,
  brakeMs: 600_000,
};

export interface LivenessDeps {
  readonly stores: NodeStores;
  /** Off the main thread: a fleet's heartbeats must not hold up calls. */
  readonly writeTogether: WriteTogether;
  readonly status: NodeStatusService;
  readonly clock: Clock;
  readonly log: Logger;
  readonly options: LivenessOptions;
}

interface Heard {
  at: number;
  /** What its daemon was told last. */
  intervalMs: number;
}

const HEARD_STATUSES: readonly NodeStatus[] = ["starting", "active", "degraded"];
const BATCH_SIZES = [1, 3, 10, 30, 100, 300, 1000, 3000, 10_000];

/** When each daemon was last heard, by our own monotonic clock: theirs may be wrong. Written to the store in batches. */
export class NodeLiveness {
  readonly #deps: LivenessDeps;
  readonly #heard = new Map<string, Heard>();
  readonly #unsaved = new Set<string>();
  /** Marked unreachable, and not heard since. */
  readonly #lost = new Set<string>();
  readonly #batches = new Distribution(BATCH_SIZES);
  #fleet: FleetState;
  #expected = 0;
  #overdue = 0;

  constructor(deps: LivenessDeps) {
    this.#deps = deps;
    this.#fleet = firstFleetState(deps.clock.monotonic());
  }

  /** For the operator's figures. */
  get figures(): FleetFigures {
    return {
      braked: this.#fleet.brakedAt !== null,
      overdue: this.#overdue,
      heartbeatSeconds: this.heartbeatSeconds(),
      batches: this.#batches,
    };
  }

  heard(nodeId: string): void {
    const at = this.#deps.clock.monotonic();
    const heard = this.#heard.get(nodeId);
    if (heard) heard.at = at;
    else this.#heard.set(nodeId, { at, intervalMs: this.heartbeatSeconds() * 1000 });
    this.#unsaved.add(nodeId);
  }

  /** The daemon was heard, and is told when to be heard next; one whose node was lost meanwhile, also to say anew what it runs. */
  beat(nodeId: string): Pick<HeartbeatAnswer, "heartbeatSeconds" | "report"> {
    this.heard(nodeId);
    const heartbeatSeconds = this.heartbeatSeconds();
    const heard = this.#heard.get(nodeId);
    if (heard) heard.intervalMs = heartbeatSeconds * 1000;
    return this.#lost.delete(nodeId) ? { heartbeatSeconds, report: true } : { heartbeatSeconds };
  }

  forget(nodeId: string): void {
    this.#heard.delete(nodeId);
    this.#unsaved.delete(nodeId);
    this.#lost.delete(nodeId);
  }

  /** Seconds between two heartbeats of one daemon, for the fleet's present size: who is heard, and who is expected to be. */
  heartbeatSeconds(): number {
    const { minHeartbeatSeconds, heartbeatsPerSecond } = this.#deps.options;
    const size = Math.max(this.#heard.size, this.#expected);
    return Math.max(minHeartbeatSeconds, Math.ceil(size / heartbeatsPerSecond));
  }

  /** Stores who was heard, then marks who went quiet. One call at a time; the caller paces it. */
  async sweep(): Promise<void> {
    await this.flush();
    const ids = await this.#deps.stores.nodes.idsByStatus(HEARD_STATUSES);
    this.#expected = ids.length;
    const now = this.#deps.clock.monotonic();
    const unheard = { heardAt: null, intervalMs: this.heartbeatSeconds() * 1000 };
    const nodes = ids.map((id): WatchedNode => {
      const heard = this.#heard.get(id);
      return heard ? { id, heardAt: heard.at, intervalMs: heard.intervalMs } : { id, ...unheard };
    });
    const judgement = judgeFleet(this.#fleet, nodes, { now, rules: this.#deps.options });
    this.#tellBrake(judgement.state, { overdue: judgement.overdue, nodes: nodes.length });
    this.#fleet = judgement.state;
    this.#overdue = judgement.overdue;
    for (const id of judgement.lost) await this.#lose(id, now);
  }

  /** One transaction for all that were heard since the last one. */
  async flush(): Promise<void> {
    if (this.#unsaved.size === 0) return;
    const batch = [...this.#unsaved];
    this.#unsaved.clear();
    this.#batches.observe(batch.length);
    await this.#deps.writeTogether(this.#deps.stores.nodes.seenStatements(batch, this.#deps.clock.now()));
  }

  async #lose(id: string, judgedAt: number): Promise<void> {
    // Heard while the ones before it were written.
    if ((this.#heard.get(id)?.at ?? Number.NEGATIVE_INFINITY) > judgedAt) return;
    this.#heard.delete(id);
    this.#lost.add(id);
    await this.#deps.status.apply(id, "went_quiet", "The daemon has not been heard; its workloads may still run.");
  }

  #tellBrake(next: FleetState, figures: { readonly overdue: number; readonly nodes: number }): void {
    const wasBraked = this.#fleet.brakedAt !== null;
    const braked = next.brakedAt !== null;
    if (braked === wasBraked) return;
    const words = braked
      ? "a large part of the fleet went quiet at once: no status is changed until it is heard again"
      : "the fleet is judged again";
    this.#deps.log.warn({ ...figures, braked }, words);
  }
}

export interface FleetFigures {
  readonly braked: boolean;
  /** Nodes that missed a heartbeat and are not given up. */
  readonly overdue: number;
  readonly heartbeatSeconds: number;
  /** How many nodes each write of heartbeats was for. */
  readonly batches: Distribution;
}
