import { growingCache } from "@fairlead/hosting/growing-cache";
import { DomainError } from "@fairlead/protocol/errors";
import type { Clock } from "@fairlead/protocol/values/clock";

export interface NodeTurnsOptions {
  /** Connections that a node may open in a burst. */
  readonly burst: number;
  /** Then one more per interval. */
  readonly everyMs: number;
  readonly clock: Clock;
}

/** More nodes than one server can have. */
const MAX_NODES = 50_000;

/** Limits connections per node, so that one in a reconnect loop does not starve the others. */
export class NodeTurns {
  readonly #options: NodeTurnsOptions;
  /** When each node's burst is full again, by the monotonic clock. */
  readonly #fullAt = growingCache<number>(MAX_NODES);

  constructor(options: NodeTurnsOptions) {
    this.#options = options;
  }

  /** Does not consume: a node rejected for another reason keeps its turn. @throws DomainError rate_limit_exceeded */
  check(nodeId: string): void {
    const { burst, everyMs } = this.#options;
    const waitMs = this.#backlogMs(nodeId) - (burst - 1) * everyMs;
    if (waitMs <= 0) return;
    throw new DomainError("rate_limit_exceeded", "This node connects too often.", {
      retryAfterSeconds: Math.ceil(waitMs / 1000),
    });
  }

  spend(nodeId: string): void {
    const { everyMs, clock } = this.#options;
    this.#fullAt.set(nodeId, clock.monotonic() + this.#backlogMs(nodeId) + everyMs);
  }

  #backlogMs(nodeId: string): number {
    const fullAt = this.#fullAt.get(nodeId) ?? 0;
    return Math.max(0, fullAt - this.#options.clock.monotonic());
  }
}
