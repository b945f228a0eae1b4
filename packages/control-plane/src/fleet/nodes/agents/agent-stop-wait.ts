import { once } from "node:events";
import type { NodeChangeFeed } from "../node-change-feed.ts";
import { isAgent } from "../observed/sent-workloads.ts";
import type { NodeStores } from "../records/node-stores.ts";

export interface AgentStopWaitDeps {
  readonly stores: Pick<NodeStores, "nodes" | "reports">;
  readonly changes: NodeChangeFeed;
  readonly epoch: string;
}

/** Waits for agents to stop on nodes whose desired state no longer includes them. */
export class AgentStopWait {
  readonly #deps: AgentStopWaitDeps;

  constructor(deps: AgentStopWaitDeps) {
    this.#deps = deps;
  }

  /**
   * Resolves when the daemon reports, for the current desired state, that no agent is running; immediately if none was
   * planned.
   * @throws AbortError by `stop`
   */
  async gone(nodeId: string, stop: AbortSignal): Promise<void> {
    const seen = Promise.withResolvers<void>();
    const look = async (): Promise<void> => {
      if (await this.#areGone(nodeId)) seen.resolve();
    };
    const unlisten = this.#deps.changes.listen((change) => {
      // A failed check is repeated on the next change, and every caller has a time limit.
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
    if (node === null || desired === null) return true;
    const report = await stores.reports.report(nodeId);
    const reported = report?.reports.some(isAgent) === true;
    if (!reported && !desired.workloads.some(isAgent)) return true;
    return !reported && report?.epoch === epoch && report.generation >= desired.generation;
  }
}
