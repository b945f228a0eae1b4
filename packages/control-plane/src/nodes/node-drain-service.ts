import { setTimeout as delay } from "node:timers/promises";
import type { Clock } from "@fairlead/protocol/clock";
import type { NodeStatus } from "@fairlead/protocol/resources";
import type { Logger } from "pino";
import type { AgentDeparture } from "./agent-departure.ts";
import type { NodeStatusService } from "./node-status-service.ts";
import type { NodeStores } from "./node-stores.ts";

/** The calls that run on nodes; the tunnels. */
export interface NodeCalls {
  /** Lets no new call through; resolves when the last call on the node is over. */
  drain(nodeId: string): Promise<void>;
  /** Lets no new call through to these nodes, and to all others again. */
  hold(nodeIds: ReadonlySet<string>): void;
}

export interface NodeDrainDeps {
  readonly stores: NodeStores;
  readonly status: NodeStatusService;
  readonly calls: NodeCalls;
  readonly agents: Pick<AgentDeparture, "gone">;
  readonly clock: Clock;
  readonly log: Logger;
  /** How long a node's running calls are waited for where nobody says; the default if left out. */
  readonly drainMs?: number;
}

export const DEFAULT_DRAIN_MS = 30_000;

/** Its statuses in which a node takes no new calls, however its tunnel stands. */
const HELD: readonly NodeStatus[] = ["draining", "drained"];

export interface Drain {
  /** One sentence, for people. */
  readonly reason: string;
  readonly drainMs?: number;
}

/**
 * Takes nodes out of service without cutting what runs on them: their agents stop first, then the calls on their engines end, then the
 * engines stop. That a node drains, and until when, is in the store: whoever
 * sweeps goes on with it, after a restart of the server too.
 */
export class NodeDrainService {
  readonly #deps: NodeDrainDeps;
  /** Nodes that are waited for in the background, and what ends the waiting. */
  readonly #waits = new Map<string, AbortController>();

  constructor(deps: NodeDrainDeps) {
    this.#deps = deps;
  }

  /**
   * No new call reaches the node from now on; resolves when its agents are gone and the last call is over, or after its time: counted from when the node
   * began to drain, so that a restart of the server does not begin it anew. Nothing to wait for where the node served nobody.
   * @throws AbortError when `stop` ends the waiting.
   */
  async drain(nodeId: string, { stop, ...how }: Drain & { readonly stop: AbortSignal }): Promise<void> {
    await this.#deps.stores.transaction((stores) => this.beginWithin(stores, nodeId, how)).then((begun) => begun?.());
    await this.#wait(nodeId, stop);
  }

  /**
   * Marks it inside a caller's transaction. A node that drains already may be given less time, never more.
   * @returns what the caller does after its commit; null where the node was not in service.
   */
  async beginWithin(stores: NodeStores, nodeId: string, how: Drain): Promise<(() => void) | null> {
    const { clock, status, drainMs = DEFAULT_DRAIN_MS } = this.#deps;
    const { reason } = how;
    const entered = await status.applyWithin(stores, nodeId, { event: "drain_requested", reason });
    const node = entered ?? (await stores.nodes.find(nodeId));
    if (node?.status !== "draining") return null;
    const until = clock.now() + (how.drainMs ?? drainMs);
    if (entered || until < (node.drainUntil ?? Number.POSITIVE_INFINITY))
      await stores.nodes.setDrainUntil(nodeId, until);
    return () => {
      if (entered) status.announce(entered);
    };
  }

  /** Waits for a draining node in the background; harmless where somebody does already. */
  watch(nodeId: string): void {
    if (this.#waits.has(nodeId)) return;
    const stop = new AbortController();
    this.#waits.set(nodeId, stop);
    this.#wait(nodeId, stop.signal)
      .catch((error: unknown) => {
        if (!stop.signal.aborted)
          this.#deps.log.warn({ err: error, nodeId }, "a node's drain broke off; it is taken up again");
      })
      .finally(() => {
        if (this.#waits.get(nodeId) === stop) this.#waits.delete(nodeId);
      });
  }

  /** The node is back in service. */
  async release(nodeId: string): Promise<void> {
    this.#waits.get(nodeId)?.abort();
    this.#waits.delete(nodeId);
    await this.sweep();
  }

  /** Holds calls back from every node that is out of service, and goes on with every drain. */
  async sweep(): Promise<void> {
    const nodes = await this.#deps.stores.nodes.listByStatus(HELD);
    this.#deps.calls.hold(new Set([...nodes.map(({ id }) => id), ...this.#waits.keys()]));
    for (const { id, status } of nodes) if (status === "draining") this.watch(id);
  }

  /** Waits no more; drains go on with the next start. */
  close(): void {
    for (const stop of this.#waits.values()) stop.abort();
    this.#waits.clear();
  }

  async #wait(nodeId: string, stop: AbortSignal): Promise<void> {
    const { stores, status, clock, drainMs = DEFAULT_DRAIN_MS } = this.#deps;
    const node = await stores.nodes.find(nodeId);
    if (node?.status !== "draining") return;
    const leftMs = Math.max(0, (node.drainUntil ?? node.statusSince + drainMs) - clock.now());
    const waiting = new AbortController();
    const signal = AbortSignal.any([stop, waiting.signal]);
    const over = await Promise.race([
      this.#isQuiet(nodeId, signal).then(() => true),
      delay(leftMs, false, { signal, ref: false }),
    ]).finally(() => waiting.abort());
    const told = over
      ? "The last call is over; its workloads stop."
      : "Calls or agents that still ran were out of time; its workloads stop.";
    await status.apply(nodeId, "drained", told);
  }

  async #isQuiet(nodeId: string, stop: AbortSignal): Promise<void> {
    const { agents, calls } = this.#deps;
    // Together, since agents make calls themselves; what they still call on this node is among the last ones.
    await Promise.all([agents.gone(nodeId, stop), calls.drain(nodeId)]);
  }
}
