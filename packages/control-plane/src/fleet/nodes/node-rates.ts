import { growingCache } from "@fairlead/hosting/growing-cache";
import { DomainError } from "@fairlead/protocol/errors";
import type { Clock } from "@fairlead/protocol/values/clock";
import { TokenBucket } from "@fairlead/protocol/values/token-bucket";
import type { BoundCounters } from "../../telemetry/bounds/bound-counters.ts";
import { NODE_RATES, type NodeRateKind } from "../../telemetry/bounds/node-rate-bounds.ts";

/** Far above the size of a fleet; beyond it, the least recently used node starts with full buckets. */
const MAX_NODES = 100_000;

type Buckets = Partial<Record<NodeRateKind, TokenBucket>>;

/** In-memory token buckets by node and kind. They outlive links, so reconnecting refills nothing. */
export class NodeRates {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #bounds: Pick<BoundCounters, "reached">;
  readonly #nodes = growingCache<Buckets>(MAX_NODES);

  constructor(deps: { readonly clock: Pick<Clock, "monotonic">; readonly bounds: Pick<BoundCounters, "reached"> }) {
    this.#clock = deps.clock;
    this.#bounds = deps.bounds;
  }

  /** For HTTP calls, after the node is authenticated. @throws DomainError rate_limit_exceeded */
  require(nodeId: string, kind: NodeRateKind): void {
    if (this.take(nodeId, kind)) return;
    this.#bounds.reached("node_call_rate");
    const retryAfterSeconds = Math.ceil(this.msUntil(nodeId, kind) / 1000);
    throw new DomainError("rate_limit_exceeded", "Too many calls from this node.", { retryAfterSeconds });
  }

  take(nodeId: string, kind: NodeRateKind, amount = 1): boolean {
    return this.#bucket(nodeId, kind).take(this.#clock.monotonic(), amount);
  }

  /** @returns milliseconds until the amount is available. */
  msUntil(nodeId: string, kind: NodeRateKind, amount = 1): number {
    return this.#bucket(nodeId, kind).msUntil(this.#clock.monotonic(), amount);
  }

  #bucket(nodeId: string, kind: NodeRateKind): TokenBucket {
    let buckets = this.#nodes.get(nodeId);
    if (buckets === undefined) {
      buckets = {};
      this.#nodes.set(nodeId, buckets);
    }
    return (buckets[kind] ??= new TokenBucket(NODE_RATES[kind], this.#clock.monotonic()));
  }
}
