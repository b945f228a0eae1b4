import type { Clock } from "@fairlead/protocol/values/clock";
import { CONNECT_TOKEN_TTL_SECONDS, type WorkloadConnect } from "@fairlead/protocol/workload-connect";

export interface RenewedWayDeps {
  /** Requests a new token from the platform host. */
  readonly ask: () => Promise<WorkloadConnect>;
  readonly clock: Clock;
}

const RENEW_AFTER_MS = (CONNECT_TOKEN_TTL_SECONDS * 1000 * 2) / 3;
const ENDS_AFTER_MS = CONNECT_TOKEN_TTL_SECONDS * 1000;

/** The connection to a workload; its token is renewed after two thirds of its lifetime. */
export class RenewedWay {
  readonly #deps: RenewedWayDeps;
  #held: { readonly way: WorkloadConnect; readonly askedAt: number } | null = null;
  #asking: Promise<WorkloadConnect> | null = null;

  constructor(deps: RenewedWayDeps) {
    this.#deps = deps;
  }

  /** @throws what `ask` throws, if no valid token is left. */
  async current(): Promise<WorkloadConnect> {
    const held = this.#held;
    const age = held === null ? Number.POSITIVE_INFINITY : this.#deps.clock.monotonic() - held.askedAt;
    if (held !== null && age < RENEW_AFTER_MS) return held.way;
    const asked = this.#ask();
    if (held === null || age >= ENDS_AFTER_MS) return asked;
    return asked.catch(() => held.way);
  }

  /** Call this if the gateway rejected the token. */
  forget(way: WorkloadConnect): void {
    if (this.#held?.way === way) this.#held = null;
  }

  /** Concurrent callers share one request. */
  #ask(): Promise<WorkloadConnect> {
    const askedAt = this.#deps.clock.monotonic();
    this.#asking ??= this.#deps
      .ask()
      .then((way) => {
        this.#held = { way, askedAt };
        return way;
      })
      .finally(() => {
        this.#asking = null;
      });
    return this.#asking;
  }
}
