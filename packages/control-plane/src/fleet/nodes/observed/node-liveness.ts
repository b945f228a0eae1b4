import { Distribution } from "@fairlead/hosting/distribution";
import type { HeartbeatAnswer } from "@fairlead/protocol/daemon-link";
import type { NodeStatus } from "@fairlead/protocol/resources";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { Logger } from "pino";
import type { WriteTogether } from "../../../installation/db/opened-handle.ts";
import type { NodeStores } from "../records/node-stores.ts";
import { type FleetRules, type FleetState, firstFleetState, judgeFleet, type WatchedNode } from "./fleet-rules.ts";
import type { NodeStatusService } from "./node-status-service.ts";

export interface NodeLivenessOptions extends FleetRules {
  /** Target rate of heartbeats of the whole fleet; the interval grows with the fleet. */
  readonly heartbeatsPerSecond: number;
  readonly minHeartbeatSeconds: number;
}

export const DEFAULT_NODE_LIVENESS: NodeLivenessOptions = {
  heartbeatsPerSecond: 50,
  minHeartbeatSeconds: 10,
  missedBeats: 3,
  brakeShare: 0.5,
  brakeNodes: 3,
  brakeMs: 600_000,
};

export interface LivenessDeps {
  readonly stores: NodeStores;
  /** Off the main thread: heartbeats must not delay calls. */
  readonly writeTogether: WriteTogether;
  readonly status: NodeStatusService;
  readonly clock: Clock;
  readonly log: Logger;
  readonly options: NodeLivenessOptions;
}

interface Heard {
  at: number;
  /** The interval sent to its daemon. */
  intervalMs: number;
}

const STOPPED =
  "The daemon was stopped. Its workloads keep running. Start it on the machine: `systemctl start fairlead-daemon`.";
const QUIET =
  "The daemon does not respond. Its workloads may still be running. Check that the machine is up and online, and run `fairlead-daemon doctor` on it.";

const HEARD_STATUSES: readonly NodeStatus[] = ["starting", "active", "degraded"];
const BATCH_SIZES = [1, 3, 10, 30, 100, 300, 1000, 3000, 10_000];

/** When each daemon was last heard, by our monotonic clock: theirs may be wrong. Written to the store in batches. */
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

  /** For metrics. */
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

  /** Records a heartbeat. @returns when the next one is due, and whether a node that was lost must report its workloads again. */
  beat(nodeId: string): Pick<HeartbeatAnswer, "heartbeatSeconds" | "report"> {
    this.heard(nodeId);
    const heartbeatSeconds = this.heartbeatSeconds();
    const heard = this.#heard.get(nodeId);
    if (heard) heard.intervalMs = heartbeatSeconds * 1000;
    return this.#lost.delete(nodeId) ? { heartbeatSeconds, report: true } : { heartbeatSeconds };
  }

  /** Its daemon stopped gracefully, so the node need not be missed first. */
  async left(nodeId: string): Promise<void> {
    this.#heard.delete(nodeId);
    this.#lost.add(nodeId);
    await this.#deps.status.apply(nodeId, "daemon_stopped", STOPPED);
  }

  forget(nodeId: string): void {
    this.#heard.delete(nodeId);
    this.#unsaved.delete(nodeId);
    this.#lost.delete(nodeId);
  }

  /** Seconds between heartbeats of a daemon, for the current size of the fleet. */
  heartbeatSeconds(): number {
    const { minHeartbeatSeconds, heartbeatsPerSecond } = this.#deps.options;
    const size = Math.max(this.#heard.size, this.#expected);
    return Math.max(minHeartbeatSeconds, Math.ceil(size / heartbeatsPerSecond));
  }

  /** Stores heartbeats, then marks silent nodes. One call at a time; the caller sets the pace. */
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

  /** One transaction for all heartbeats since the last one. */
  async flush(): Promise<void> {
    if (this.#unsaved.size === 0) return;
    const batch = [...this.#unsaved];
    this.#unsaved.clear();
    this.#batches.observe(batch.length);
    await this.#deps.writeTogether(this.#deps.stores.nodes.seenStatements(batch, this.#deps.clock.now()));
  }

  async #lose(id: string, judgedAt: number): Promise<void> {
    // Heard during the write.
    if ((this.#heard.get(id)?.at ?? Number.NEGATIVE_INFINITY) > judgedAt) return;
    this.#heard.delete(id);
    this.#lost.add(id);
    await this.#deps.status.apply(id, "went_quiet", QUIET);
  }

  #tellBrake(next: FleetState, figures: { readonly overdue: number; readonly nodes: number }): void {
    const wasBraked = this.#fleet.brakedAt !== null;
    const braked = next.brakedAt !== null;
    if (braked === wasBraked) return;
    const words = braked
      ? "a large part of the fleet went silent at the same time; no status is changed until it responds again"
      : "node statuses are updated again";
    this.#deps.log.warn({ ...figures, braked }, words);
  }
}

export interface FleetFigures {
  readonly braked: boolean;
  /** Nodes that missed a heartbeat but are not unreachable. */
  readonly overdue: number;
  readonly heartbeatSeconds: number;
  /** Nodes per write of heartbeats. */
  readonly batches: Distribution;
}
