import { setTimeout as delay } from "node:timers/promises";
import type { NodeStatus } from "@fairlead/protocol/resources";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { Logger } from "pino";
import type { AgentStopWait } from "../agents/agent-stop-wait.ts";
import type { NodeStatusService } from "../observed/node-status-service.ts";
import type { NodeStores } from "../records/node-stores.ts";

/** Calls running on nodes; implemented by the tunnels. */
export interface NodeCalls {
  /** Blocks new calls; resolves when the last call on the node has finished. */
  drain(nodeId: string): Promise<void>;
  /** Blocks new calls to these nodes, and unblocks all others. */
  hold(nodeIds: ReadonlySet<string>): void;
}

export interface NodeDrainDeps {
  readonly stores: NodeStores;
  readonly status: NodeStatusService;
  readonly calls: NodeCalls;
  readonly agents: Pick<AgentStopWait, "gone">;
  readonly clock: Clock;
  readonly log: Logger;
  /** Default time limit for running calls. */
  readonly drainMs?: number;
}

export const DEFAULT_DRAIN_MS = 30_000;

/** Statuses in which a node takes no new calls, even if its tunnel is open. */
const HELD: readonly NodeStatus[] = ["draining", "drained"];

export interface Drain {
  /** One sentence. */
  readonly reason: string;
  readonly drainMs?: number;
}

const ASKED = " drained this node";

/** The drain reason for a user's request. */
export function drainAsked(who: string, drainMs: number): string {
  return `${who}${ASKED}: no new calls; its agents stop, and running calls have up to ${drainMs / 1000} s to finish.`;
}

/** @returns the part of `drainAsked` that still applies afterwards, as a sentence; "" for another reason. */
function askedBy(reason: string): string {
  const end = reason.indexOf(ASKED);
  return end < 0 ? "" : `${reason.slice(0, end)}${ASKED}. `;
}

/**
 * Drains nodes: agents stop first, then running calls finish, then engines stop. Drains and their deadlines are stored, so that they
 * continue after a restart of the server.
 */
export class NodeDrainService {
  readonly #deps: NodeDrainDeps;
  /** Running waits and how to abort them. */
  readonly #waits = new Map<string, AbortController>();

  constructor(deps: NodeDrainDeps) {
    this.#deps = deps;
  }

  /**
   * Blocks new calls; resolves when the agents are gone and the last call has finished, or after the time limit, counted from the start of
   * the drain. Returns immediately if the node was not serving.
   * @throws AbortError when `stop` aborts the wait.
   */
  async drain(nodeId: string, { stop, ...how }: Drain & { readonly stop: AbortSignal }): Promise<void> {
    await this.#deps.stores.transaction((stores) => this.beginWithin(stores, nodeId, how)).then((begun) => begun?.());
    await this.#wait(nodeId, stop);
  }

  /**
   * Marks the node in the caller's transaction. A running drain may only get less time.
   * @returns what to call after the commit; null if the node was not in service.
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

  /** Waits in the background. Idempotent. */
  watch(nodeId: string): void {
    if (this.#waits.has(nodeId)) return;
    const stop = new AbortController();
    this.#waits.set(nodeId, stop);
    this.#wait(nodeId, stop.signal)
      .catch((error: unknown) => {
        if (!stop.signal.aborted)
          this.#deps.log.warn({ err: error, nodeId }, "draining a node was interrupted; continuing");
      })
      .finally(() => {
        if (this.#waits.get(nodeId) === stop) this.#waits.delete(nodeId);
      });
  }

  /** The node is in service again. */
  async release(nodeId: string): Promise<void> {
    this.#waits.get(nodeId)?.abort();
    this.#waits.delete(nodeId);
    await this.sweep();
  }

  /** Blocks calls to all nodes out of service, and continues all drains. */
  async sweep(): Promise<void> {
    const nodes = await this.#deps.stores.nodes.listByStatus(HELD);
    this.#deps.calls.hold(new Set([...nodes.map(({ id }) => id), ...this.#waits.keys()]));
    for (const { id, status } of nodes) if (status === "draining") this.watch(id);
  }

  /** Stops waiting; drains continue at the next start. */
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
      ? "The last call has finished; stopping the workloads."
      : "The time limit for running calls and agents has passed; stopping the workloads.";
    await status.apply(nodeId, "drained", `${askedBy(node.statusMessage)}${told}`);
  }

  async #isQuiet(nodeId: string, stop: AbortSignal): Promise<void> {
    const { agents, calls } = this.#deps;
    // Concurrently, because agents make calls, possibly to this node.
    await Promise.all([agents.gone(nodeId, stop), calls.drain(nodeId)]);
  }
}
