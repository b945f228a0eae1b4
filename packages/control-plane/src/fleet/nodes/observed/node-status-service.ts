import type { NodeStatus } from "@fairlead/protocol/resources";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { IdSource } from "@fairlead/protocol/values/ids";
import type { WorkloadSpec } from "@fairlead/protocol/workload";
import type { Logger } from "pino";
import type { NodeRecord } from "../node.ts";
import type { NodeChangeFeed } from "../node-change-feed.ts";
import type { NodeHistory } from "../records/node-history.ts";
import type { NodeStores } from "../records/node-stores.ts";
import { type NodeStatusEvent, nextNodeStatus } from "./node-status.ts";
import { isAgent, sentWorkloads } from "./sent-workloads.ts";

export interface NodeStatusDeps {
  readonly stores: NodeStores;
  readonly changes: NodeChangeFeed;
  readonly history: Pick<NodeHistory, "open" | "take" | "settle">;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly log: Logger;
}

export interface NodeNote {
  readonly kind: string;
  /** Shown to users. */
  readonly message: string;
  /** At most one event is kept per value. */
  readonly once?: string;
}

/** The only writer of `node.status`. Every change is recorded as an event with its reason. */
export class NodeStatusService {
  readonly #deps: NodeStatusDeps;

  constructor(deps: NodeStatusDeps) {
    this.#deps = deps;
  }

  /** Applies the event if it is valid in the current status. @param reason one sentence, shown to users. */
  async apply(nodeId: string, event: NodeStatusEvent, reason: string): Promise<void> {
    // A read avoids needless writes: after a restart, a whole fleet reports what is already known.
    const node = await this.#deps.stores.nodes.find(nodeId);
    if (node === null || nextNodeStatus(node.status, event) === null) return;
    await this.#deps.history.open(nodeId);
    const entered = await this.#deps.stores.transaction((stores) =>
      this.applyWithin(stores, nodeId, { event, reason }),
    );
    await this.#deps.history.settle(nodeId);
    if (entered) this.announce(entered);
  }

  /** Like `apply`, in the caller's transaction; call `announce` after the commit. */
  async applyWithin(
    stores: NodeStores,
    nodeId: string,
    change: { readonly event: NodeStatusEvent; readonly reason: string },
  ): Promise<NodeRecord | null> {
    const node = await stores.nodes.findForUpdate(nodeId);
    const status = node && nextNodeStatus(node.status, change.event);
    if (!status) return null;
    const at = this.#deps.clock.now();
    await stores.nodes.setStatus(nodeId, { status, message: change.reason, since: at });
    const desired = await stores.reports.desired(nodeId);
    if (changesDesired({ from: node, to: status }, desired?.workloads ?? [])) await stores.reports.renewDesired(nodeId);
    if (!BY_NODE.has(change.event) || this.#deps.history.take(nodeId, 1) === 1) {
      const event = { kind: change.event, status, message: change.reason };
      await stores.events.append([{ id: this.#deps.ids.next("event"), nodeId, at, ...event }]);
    }
    return { ...node, status, statusMessage: change.reason, statusSince: at };
  }

  /** Records a note that does not change the status, as status message and event. */
  async note(nodeId: string, note: NodeNote): Promise<void> {
    const { kind, message, once } = note;
    await this.#deps.history.open(nodeId);
    const noted = await this.#deps.stores.transaction(async (stores) => {
      const node = await stores.nodes.findForUpdate(nodeId);
      if (node === null) return null;
      if (node.statusMessage !== message) await stores.nodes.setStatusMessage(nodeId, message);
      // Notes with `once` are already limited.
      if (once === undefined && this.#deps.history.take(nodeId, 1) === 0) return node;
      const event = {
        id: this.#deps.ids.next("event"),
        nodeId,
        at: this.#deps.clock.now(),
        kind,
        status: null,
        message,
      };
      await stores.events.append([once === undefined ? event : { ...event, sourceId: `${nodeId}.${once}` }]);
      return node;
    });
    if (noted === null) return;
    await this.#deps.history.settle(nodeId);
    this.#deps.log.warn({ nodeId, kind }, message);
    this.#deps.changes.emit({ nodeId, projectId: noted.projectId, aspect: "status" });
  }

  announce(node: NodeRecord): void {
    this.#deps.log.info({ nodeId: node.id, status: node.status, reason: node.statusMessage }, "node entered status");
    const { id: nodeId, projectId } = node;
    this.#deps.changes.emit({ nodeId, projectId, aspect: "status" });
    if (TELL_DESIRED.has(node.status)) {
      this.#deps.changes.emit({ nodeId, projectId, aspect: "desired" });
    }
  }
}

/** Events that a node can trigger repeatedly. */
const BY_NODE: ReadonlySet<NodeStatusEvent> = new Set([
  "reported_ready",
  "reported_not_ready",
  "went_quiet",
  "daemon_stopped",
]);

/** Statuses that may have created a new generation. */
const TELL_DESIRED: ReadonlySet<NodeStatus> = new Set(["starting", "draining", "drained"]);

interface Step {
  readonly from: NodeRecord;
  readonly to: NodeStatus;
}

/** After a drain, a node must report ready again, for each new generation. */
function changesDesired({ from, to }: Step, planned: readonly WorkloadSpec[]): boolean {
  if (from.status === "drained" || to === "drained" || (from.status === "draining" && to === "starting")) return true;
  return to === "draining" && sentWorkloads(from.status, planned).some(isAgent);
}
