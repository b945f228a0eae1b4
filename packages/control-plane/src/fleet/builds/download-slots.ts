import { DomainError } from "@fairlead/protocol/errors";
import type { BoundCounters } from "../../telemetry/bounds/bound-counters.ts";

export interface DownloadLimits {
  /** Limit per client network: many nodes may share one address. */
  readonly perNetwork: number;
  readonly total: number;
}

const LIMITS: DownloadLimits = { perNetwork: 64, total: 256 };
const RETRY_SECONDS = 10;

/** Limits concurrent downloads, each of which holds a file and a connection. */
export class DownloadSlots {
  readonly #limits: DownloadLimits;
  readonly #bounds: Pick<BoundCounters, "reached">;
  readonly #running = new Map<string, number>();
  #total = 0;

  constructor(bounds: Pick<BoundCounters, "reached">, limits: DownloadLimits = LIMITS) {
    this.#bounds = bounds;
    this.#limits = limits;
  }

  /** @returns a function that releases the slot; call it once. @throws DomainError overloaded */
  take(network: string): () => void {
    const running = this.#running.get(network) ?? 0;
    if (running >= this.#limits.perNetwork || this.#total >= this.#limits.total) {
      this.#bounds.reached("daemon_downloads");
      const message = "Too many downloads are running. Retry shortly.";
      throw new DomainError("overloaded", message, { retryAfterSeconds: RETRY_SECONDS });
    }
    this.#running.set(network, running + 1);
    this.#total += 1;
    return () => this.#giveBack(network);
  }

  #giveBack(network: string): void {
    this.#total -= 1;
    const left = (this.#running.get(network) ?? 1) - 1;
    if (left === 0) this.#running.delete(network);
    else this.#running.set(network, left);
  }
}
