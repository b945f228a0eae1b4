import type { Clock } from "@fairlead/protocol/values/clock";
import type { ConnectTokens } from "../../access/auth/tokens/connect-token.ts";
import type { WorkloadClaims } from "../../access/auth/tokens/tokens.ts";

/** Rechecks a token's permission; implemented by the tokens' room. */
export type RightOf = Pick<ConnectTokens, "confirm">;

export interface OpenRelaysDeps {
  readonly tokens: RightOf;
  readonly clock: Clock;
  /** Maximum lifetime of a connection opened with one token, in milliseconds. */
  readonly maxMs: number;
  /** Interval of permission checks. Facts are cached for 0.9 s; together they stay below one second. */
  readonly sweepMs: number;
}

export const RELAY_SWEEP_MS = 100;
/** Connections outlive their token, but every client must present a new token once a day. */
export const RELAY_MAX_MS = 24 * 3_600_000;

interface OpenRelay {
  readonly openedAt: number;
  readonly cut: () => void;
}

/** Open relay connections by token. They are closed when the token's permission is revoked (decisions/0025). */
export class OpenRelays {
  readonly #deps: OpenRelaysDeps;
  /** A cached token always yields the same claims object. */
  readonly #byToken = new Map<WorkloadClaims, Set<OpenRelay>>();
  #timer: NodeJS.Timeout | null = null;
  #sweeping = false;

  constructor(deps: OpenRelaysDeps) {
    this.#deps = deps;
  }

  /** @param cut closes the connection immediately. @returns a function to call when it has closed. */
  add(claims: WorkloadClaims, cut: () => void): () => void {
    const relay: OpenRelay = { openedAt: this.#deps.clock.monotonic(), cut };
    const relays = this.#byToken.get(claims) ?? new Set();
    relays.add(relay);
    this.#byToken.set(claims, relays);
    this.#timer ??= setInterval(() => void this.#sweep(), this.#deps.sweepMs).unref();
    return () => {
      relays.delete(relay);
      if (relays.size === 0 && this.#byToken.get(claims) === relays) this.#byToken.delete(claims);
      if (this.#byToken.size === 0) this.close();
    };
  }

  /** Stops checking; connections stay open. */
  close(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  async #sweep(): Promise<void> {
    if (this.#sweeping) return;
    this.#sweeping = true;
    try {
      for (const [claims, relays] of this.#byToken) {
        const oldest = this.#deps.clock.monotonic() - this.#deps.maxMs;
        const stands = await this.#stands(claims);
        for (const relay of relays) if (!stands || relay.openedAt <= oldest) relay.cut();
      }
    } finally {
      this.#sweeping = false;
    }
  }

  async #stands(claims: WorkloadClaims): Promise<boolean> {
    try {
      await this.#deps.tokens.confirm(claims);
      return true;
    } catch (error) {
      // An unavailable store says nothing about permissions, so connections stay open.
      return !isRefusal(error);
    }
  }
}

function isRefusal(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "invalid_credential";
}
