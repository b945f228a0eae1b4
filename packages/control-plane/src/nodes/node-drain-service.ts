import { setTimeout as delay } from "node:timers/promises";
import type { Clock } from "@fairlead/protocol/clock";
import type { NodeStatusService } from "./node-status-service.ts";
import type { NodeStores } from "./node-stores.ts";

/** The calls that run on nodes; the tunnels. */
export interface NodeCalls {
  /** Resolves when the last call on the node is over. */
  drain(nodeId: string): Promise<void>;
}

export interface NodeDrainDeps {
  readonly stores: NodeStores;
  readonly status: NodeStatusService;
  readonly calls: NodeCalls;
  readonly clock: Clock;
  /** How long a node's running calls are waited for; the default if left out. */
  readonly drainMs?: number;
}

export const DEFAULT_DRAIN_MS = 30_000;

/** Takes nodes out of service without cutting what runs on them. */
export class NodeDrainService {
  readonly #deps: NodeDrainDeps;

  constructor(deps: NodeDrainDeps) {
    this.#deps = deps;
  }

  /**
   * No new call reaches the node from now on; resolves when the last one is over, or after its time: counted from when the node
   * began to drain, so that a restart of the server does not begin it anew. Nothing to wait for where the node served nobody.
   * @param why.reason one sentence, for people. @throws AbortError when `stop` ends the waiting.
   */
  async drain(nodeId: string, why: { readonly reason: string; readonly stop: AbortSignal }): Promise<void> {
    const { stores, status, calls, clock, drainMs = DEFAULT_DRAIN_MS } = this.#deps;
    const { reason, stop } = why;
    await status.apply(nodeId, "drain_requested", reason);
    const node = await stores.nodes.find(nodeId);
    if (node?.status !== "draining") return;
    const leftMs = Math.max(0, node.statusSince + drainMs - clock.now());
    const over = await Promise.race([
      calls.drain(nodeId).then(() => true),
      delay(leftMs, false, { signal: stop, ref: false }),
    ]);
    const told = over ? "The last call is over." : "Calls that still ran were out of time.";
    await status.apply(nodeId, "drained", told);
  }
}
