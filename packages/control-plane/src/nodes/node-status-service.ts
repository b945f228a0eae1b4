import type { Clock } from "@fairlead/protocol/clock";
import type { IdSource } from "@fairlead/protocol/ids";
import type { NodeStatus } from "@fairlead/protocol/resources";
import type { WorkloadSpec } from "@fairlead/protocol/workload";
import type { Logger } from "pino";
import type { NodeRecord } from "./node.ts";
import type { NodeChanges } from "./node-changes.ts";
import { type NodeStatusEvent, nextNodeStatus } from "./node-status.ts";
import type { NodeStores } from "./node-stores.ts";
import { isAgent, toldWorkloads } from "./told-workloads.ts";

export interface NodeStatusDeps {
  readonly stores: NodeStores;
  readonly changes: NodeChanges;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly log: Logger;
}

export interface NodeNote {
  readonly kind: string;
  /** For people. */
  readonly message: string;
  /** However often it is said, one event is kept for each. */
  readonly once?: string;
}

/** The only writer of `node.status`. Entering a status is an event with its reason (design §4). */
export class NodeStatusService {
  readonly #deps: NodeStatusDeps;

  constructor(deps: NodeStatusDeps) {
    this.#deps = deps;
  }

  /** Applies the event where it means something in the node's present status. @param reason one sentence, for people. */
  async apply(nodeId: string, event: NodeStatusEvent, reason: string): Promise<void> {
    // A look costs the store no write; after a restart a whole fleet says at once what is known of it.
    const node = await this.#deps.stores.nodes.find(nodeId);
    if (node === null || nextNodeStatus(node.status, event) === null) return;
    const entered = await this.#deps.stores.transaction((stores) =>
      this.applyWithin(stores, nodeId, { event, reason }),
    );
    if (entered) this.announce(entered);
  }

  /** The same inside a caller's transaction; the caller calls `announce` after its commit. */
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
    await stores.events.append([
      { id: this.#deps.ids.next("event"), nodeId, at, kind: change.event, status, message: change.reason },
    ]);
    return { ...node, status, statusMessage: change.reason, statusSince: at };
  }

  /** Says something of a node that changes no status: as its status message and as an event. */
  async note(nodeId: string, note: NodeNote): Promise<void> {
    const { kind, message, once } = note;
    const noted = await this.#deps.stores.transaction(async (stores) => {
      const node = await stores.nodes.findForUpdate(nodeId);
      if (node === null) return null;
      if (node.statusMessage !== message) await stores.nodes.setStatusMessage(nodeId, message);
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

/** Statuses that may have made a new generation. */
const TELL_DESIRED: ReadonlySet<NodeStatus> = new Set(["starting", "draining", "drained"]);

interface Step {
  readonly from: NodeRecord;
  readonly to: NodeStatus;
}

/** One that starts from a drain says anew that it is ready, and does so for each new generation. */
function changesDesired({ from, to }: Step, planned: readonly WorkloadSpec[]): boolean {
  if (from.status === "drained" || to === "drained" || (from.status === "draining" && to === "starting")) return true;
  return to === "draining" && toldWorkloads(from, planned).some(isAgent);
}
