import { setTimeout as sleep } from "node:timers/promises";
import { afterTold, type BackoffOptions, fullJitter } from "@fairlead/protocol/values/backoff";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { LivenessOptions } from "@fairlead/wire/liveness";
import { NO_PROXIES, type ProxyRules } from "@fairlead/wire/proxy/proxy-rules";
import { StreamHandlerFailed } from "@fairlead/wire/yamux/session";
import type { Logger } from "pino";
import { reasonOf } from "../process/log.ts";
import type { IncomingCallHandler } from "./tunnel-call.ts";
import { serveTunnel } from "./tunnel-server.ts";
import { openTunnelSocket, type TunnelSocket, UpgradeRefused } from "./tunnel-upgrade.ts";

/** `connecting`: opening a connection; `waiting`: pausing before the next attempt. */
export type TunnelState = "connecting" | "open" | "waiting" | "closed";

export interface TunnelClientOptions {
  /** URL of the platform host. */
  readonly platformUrl: string;
  readonly nodeId: string;
  /** Called for every attempt. */
  readonly token: () => Promise<string>;
  readonly handler: IncomingCallHandler;
  readonly clock: Clock;
  /** In [0, 1). */
  readonly random: () => number;
  readonly log: Logger;
  /** Called on 401, 403 or 404: the token should not be reused. */
  readonly onRefused?: (status: number) => void;
  /** Closes the tunnel, as `close` does. */
  readonly signal?: AbortSignal;
  /** PEM certificate of a private certificate authority. */
  readonly certificateAuthority?: string;
  readonly proxies?: Pick<ProxyRules, "find">;
  readonly timing?: Partial<TunnelTiming>;
}

/** Milliseconds. */
export interface TunnelTiming extends LivenessOptions {
  readonly backoff: BackoffOptions;
  /** Jitter of the first attempt after a stable tunnel, because all daemons lose a restarting server simultaneously. */
  readonly edgeMs: number;
  /** Minimum pause after 401, 403 or 404. */
  readonly refusedMs: number;
  /** A tunnel that was open this long resets the backoff. */
  readonly steadyMs: number;
  /** Timeout of the platform host's response. */
  readonly upgradeMs: number;
}

export interface Tunnel {
  readonly state: TunnelState;
  /** Closes the tunnel and aborts its requests. Resolves when everything has stopped. */
  close(): Promise<void>;
}

const DEFAULT_TIMING: TunnelTiming = {
  pingIntervalMs: 10_000,
  pingTimeoutMs: 10_000,
  // Like the link's: a fleet reconnects within a minute.
  backoff: { baseMs: 500, maxMs: 20_000 },
  edgeMs: 2000,
  refusedMs: 30_000,
  steadyMs: 30_000,
  upgradeMs: 15_000,
};

/** Keeps one tunnel open until closed; reconnects after any failure. */
export function startTunnel(options: TunnelClientOptions): Tunnel {
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
  readonly #options: TunnelClientOptions;
  readonly #timing: TunnelTiming;
  readonly #own = new AbortController();
  readonly #signal: AbortSignal;
  #failures = 0;

  constructor(options: TunnelClientOptions) {
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

  /** Runs one tunnel. @returns milliseconds to pause before the next. */
  async #attempt(): Promise<number> {
    const { clock, handler, log, random } = this.#options;
    this.state = "connecting";
    try {
      const socket = await this.#open();
      this.state = "open";
      log.info("tunnel open");
      const openedAt = clock.monotonic();
      const reason = await serveTunnel(socket, { handler, clock, liveness: this.#timing, signal: this.#signal });
      if (reason instanceof StreamHandlerFailed) log.error({ err: reason }, "tunnel closed: a call failed");
      else log.info({ reason: reason?.message }, "tunnel closed");
      if (clock.monotonic() - openedAt >= this.#timing.steadyMs) {
        this.#failures = 0;
        return random() * this.#timing.edgeMs;
      }
    } catch (error) {
      if (error instanceof UpgradeRefused) return this.#refused(error);
      if (!this.#signal.aborted) log.warn({ reason: reasonOf(error) }, "could not open the tunnel");
    }
    return fullJitter(this.#timing.backoff, this.#failures++, random());
  }

  async #open(): Promise<TunnelSocket> {
    const { platformUrl, nodeId, token, certificateAuthority, proxies = NO_PROXIES } = this.#options;
    // Not `AbortSignal.timeout`, which could also end an open tunnel.
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), this.#timing.upgradeMs);
    const signal = AbortSignal.any([this.#signal, late.signal]);
    try {
      const asked = { platformUrl, nodeId, token: await token(), certificateAuthority, proxies, signal };
      return await openTunnelSocket(asked);
    } finally {
      clearTimeout(timer);
    }
  }

  #refused(refusal: UpgradeRefused): number {
    const { log, onRefused, random } = this.#options;
    const { status, retryAfterMs } = refusal;
    log.warn({ status }, "the platform host rejected the tunnel");
    if (status !== 401 && status !== 403 && status !== 404) {
      if (retryAfterMs > 0) return afterTold(retryAfterMs, random());
      return fullJitter(this.#timing.backoff, this.#failures++, random());
    }
    onRefused?.(status);
    const jitter = fullJitter(this.#timing.backoff, this.#failures++, random());
    return Math.max(retryAfterMs, this.#timing.refusedMs) + jitter;
  }
}
