import { once } from "node:events";
import type { NodeChanges } from "./node-changes.ts";
import type { NodeStores } from "./node-stores.ts";
import { isAgent, knowsAgents } from "./told-workloads.ts";

export interface AgentDepartureDeps {
  readonly stores: Pick<NodeStores, "nodes" | "reports">;
  readonly changes: NodeChanges;
  readonly epoch: string;
}

/** Waits for agents to stop on nodes whose desired state they have left. */
export class AgentDeparture {
  readonly #deps: AgentDepartureDeps;

  constructor(deps: AgentDepartureDeps) {
    this.#deps = deps;
  }

  /** Resolves once the daemon says, of the desired state that holds, that no agent runs there, and at once where none was to. @throws AbortError by `stop` */
  async gone(nodeId: string, stop: AbortSignal): Promise<void> {
    const seen = Promise.withResolvers<void>();
    const look = async (): Promise<void> => {
      if (await this.#areGone(nodeId)) seen.resolve();
    };
    const unlisten = this.#deps.changes.listen((change) => {
      // A look that failed is followed by the next change's, and whoever waits has a limit.
      if (change.nodeId === nodeId) look().catch(() => undefined);
    });
    try {
      await look();
      stop.throwIfAborted();
      await Promise.race([seen.promise, once(stop, "abort").then(() => stop.throwIfAborted())]);
    } finally {
      unlisten();
    }
  }

  async #areGone(nodeId: string): Promise<boolean> {
    const { stores, epoch } = this.#deps;
    const node = await stores.nodes.find(nodeId);
    const desired = await stores.reports.desired(nodeId);
    if (node === null || desired === null || !knowsAgents(node.daemonProtocol)) return true;
    const report = await stores.reports.report(nodeId);
    const reported = report?.reports.some(isAgent) === true;
    if (!reported && !desired.workloads.some(isAgent)) return true;
    return !reported && report?.epoch === epoch && report.generation >= desired.generation;
  }
}
