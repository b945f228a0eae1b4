import type { IncomingMessage } from "node:http";
import { DomainError } from "@fairlead/protocol/errors";
import type { BoundCounters } from "../../telemetry/bounds/bound-counters.ts";
import { networkOf } from "../limits/client-address.ts";
import type { RateLimit } from "../limits/rate-limit.ts";

/** Verifying a signature is fast, but one turn of a busy event loop may start hundreds. */
const MAX_PENDING = 4000;
/** An attacker and a fleet may share one address, so the limit per address is high. */
const MAX_PENDING_PER_ADDRESS = 1000;
const RETRY_SECONDS = 1;

export interface UpgradeGuardOptions {
  /** Failed authentications by address. */
  readonly failures: RateLimit;
  readonly clientOf: (request: IncomingMessage) => string;
  readonly bounds: Pick<BoundCounters, "reached">;
  readonly maxPending?: number;
  readonly maxPendingPerAddress?: number;
}

/**
 * Limits the cost of unauthenticated callers per address. Valid credentials are never charged, so that an attacker behind the same proxy or
 * NAT cannot lock out daemons.
 */
export class UpgradeGuard {
  readonly #options: UpgradeGuardOptions;
  readonly #pending = new Map<string, number>();
  #allPending = 0;

  constructor(options: UpgradeGuardOptions) {
    this.#options = options;
  }

  /** @throws DomainError of `authenticate`; overloaded; rate_limit_exceeded instead of invalid_credential */
  async authenticate<T>(request: IncomingMessage, authenticate: () => Promise<T>): Promise<T> {
    const network = networkOf(this.#options.clientOf(request));
    this.#begin(network);
    try {
      return await authenticate();
    } catch (error) {
      if (error instanceof DomainError && error.code === "invalid_credential") await this.#charge(network);
      throw error;
    } finally {
      this.#end(network);
    }
  }

  #begin(network: string): void {
    const { maxPending = MAX_PENDING, maxPendingPerAddress = MAX_PENDING_PER_ADDRESS, bounds } = this.#options;
    const pending = this.#pending.get(network) ?? 0;
    if (this.#allPending >= maxPending || pending >= maxPendingPerAddress) {
      bounds.reached("upgrade_authentications");
      throw new DomainError("overloaded", "Too many upgrades are being authenticated. Retry shortly.", {
        retryAfterSeconds: RETRY_SECONDS,
      });
    }
    this.#pending.set(network, pending + 1);
    this.#allPending += 1;
  }

  #end(network: string): void {
    const pending = this.#pending.get(network) ?? 1;
    if (pending === 1) this.#pending.delete(network);
    else this.#pending.set(network, pending - 1);
    this.#allPending -= 1;
  }

  async #charge(network: string): Promise<void> {
    const { failures, bounds } = this.#options;
    try {
      await failures.take(network);
    } catch (exceeded) {
      bounds.reached("failed_upgrades");
      throw exceeded;
    }
  }
}
