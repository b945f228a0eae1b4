import { setTimeout as sleep } from "node:timers/promises";
import { afterTold, type BackoffOptions, fullJitter } from "@fairlead/protocol/backoff";
import type { Clock } from "@fairlead/protocol/clock";
import type { LivenessOptions } from "@fairlead/wire/liveness";
import type { Logger } from "pino";
import { reasonOf } from "../log.ts";
import type { TunnelHandler } from "./tunnel-call.ts";
import { serveTunnel } from "./tunnel-server.ts";
import { openTunnelSocket, type TunnelSocket, UpgradeRefused } from "./tunnel-upgrade.ts";

/** `connecting`: asking for a socket; `waiting`: pausing before the next try. */
export type TunnelState = "connecting" | "open" | "waiting" | "closed";

export interface TunnelOptions {
  /** Address of the platform host, http or https. */
  readonly platformUrl: string;
  readonly nodeId: string;
  /** Asked anew for every try. */
  readonly token: () => Promise<string>;
  readonly handler: TunnelHandler;
  readonly clock: Clock;
  /** In [0, 1). */
  readonly random: () => number;
  readonly log: Logger;
  /** The platform host answered 401, 403 or 404: another try with the same token will hardly help. */
  readonly onRefused?: (status: number) => void;
  /** Closes the tunnel, as `close` does. */
  readonly signal?: AbortSignal;
  /** PEM of a private certificate authority. */
  readonly certificateAuthority?: string;
  readonly timing?: Partial<TunnelTiming>;
}

/** Milliseconds. */
export interface TunnelTiming extends LivenessOptions {
  readonly backoff: BackoffOptions;
  /** All daemons lose a restarting server at once: the first try after a steady tunnel comes at random within this. */
  readonly edgeMs: number;
  /** The least pause after 401, 403 or 404. */
  readonly refusedMs: number;
  /** How long a tunnel must have held for the next failure to count as the first. */
  readonly steadyMs: number;
  /** How long the platform host may take to answer. */
  readonly upgradeMs: number;
}

export interface Tunnel {
  readonly state: TunnelState;
  /** Cuts the tunnel with all its requests. Resolves when nothing runs any more. */
  close(): Promise<void>;
}

const DEFAULT_TIMING: TunnelTiming = {
  pingIntervalMs: 10_000,
  pingTimeoutMs: 10_000,
  // As the link's: a fleet is back within a minute.
  backoff: { baseMs: 500, maxMs: 20_000 },
  edgeMs: 2000,
  refusedMs: 30_000,
  steadyMs: 30_000,
  upgradeMs: 15_000,
};

/** Keeps one tunnel open until it is closed. No failure of the network or the platform host ends it. */
export function startTunnel(options: TunnelOptions): Tunnel {
  const client = new TunnelClient(options);
  const done = client.run();
  return {
    get state() {
      return client.state;
    },
    close: () => {
      client.abort();
      return done;
    },
  };
}

class TunnelClient {
  state: TunnelState = "connecting";
  readonly #options: TunnelOptions;
  readonly #timing: TunnelTiming;
  readonly #own = new AbortController();
  readonly #signal: AbortSignal;
  #failures = 0;

  constructor(options: TunnelOptions) {
    this.#options = options;
    this.#timing = { ...DEFAULT_TIMING, ...options.timing };
    this.#signal = options.signal ? AbortSignal.any([options.signal, this.#own.signal]) : this.#own.signal;
  }

  abort(): void {
    this.#own.abort();
  }

  async run(): Promise<void> {
    while (!this.#signal.aborted) {
      const delayMs = await this.#attempt();
      if (this.#signal.aborted) break;
      this.state = "waiting";
      await sleep(delayMs, undefined, { signal: this.#signal }).catch(() => undefined);
    }
    this.state = "closed";
  }

  /** One tunnel from start to end. @returns milliseconds to pause before the next. */
  async #attempt(): Promise<number> {
    const { clock, handler, log, random } = this.#options;
    this.state = "connecting";
    try {
      const socket = await this.#open();
      this.state = "open";
      log.info("tunnel open");
      const openedAt = clock.monotonic();
      const reason = await serveTunnel(socket, { handler, liveness: this.#timing, signal: this.#signal });
      log.info({ reason: reason?.message }, "tunnel closed");
      if (clock.monotonic() - openedAt >= this.#timing.steadyMs) {
        this.#failures = 0;
        return random() * this.#timing.edgeMs;
      }
    } catch (error) {
      if (error instanceof UpgradeRefused) return this.#refused(error);
      if (!this.#signal.aborted) log.warn({ reason: reasonOf(error) }, "tunnel could not be opened");
    }
    return fullJitter(this.#timing.backoff, this.#failures++, random());
  }

  async #open(): Promise<TunnelSocket> {
    const { platformUrl, nodeId, token, certificateAuthority } = this.#options;
    // Not `AbortSignal.timeout`: once the tunnel is open, nothing of its opening may end it.
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), this.#timing.upgradeMs);
    const signal = AbortSignal.any([this.#signal, late.signal]);
    try {
      return await openTunnelSocket({ platformUrl, nodeId, token: await token(), certificateAuthority, signal });
    } finally {
      clearTimeout(timer);
    }
  }

  #refused(refusal: UpgradeRefused): number {
    const { log, onRefused, random } = this.#options;
    const { status, retryAfterMs } = refusal;
    log.warn({ status }, "the platform host refused the tunnel");
    if (status !== 401 && status !== 403 && status !== 404) {
      if (retryAfterMs > 0) return afterTold(retryAfterMs, random());
      return fullJitter(this.#timing.backoff, this.#failures++, random());
    }
    onRefused?.(status);
    const jitter = fullJitter(this.#timing.backoff, this.#failures++, random());
    return Math.max(retryAfterMs, this.#timing.refusedMs) + jitter;
  }
}
