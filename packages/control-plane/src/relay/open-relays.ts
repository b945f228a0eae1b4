import type { Clock } from "@fairlead/protocol/clock";
import type { ConnectTokens } from "../auth/connect-token.ts";
import type { WorkloadClaims } from "../auth/tokens.ts";

/** What of a token is asked again; the tokens' room. */
export type RightOf = Pick<ConnectTokens, "confirm">;

export interface OpenRelaysDeps {
  readonly tokens: RightOf;
  readonly clock: Clock;
  /** How long anything may stay open on one token, in milliseconds. */
  readonly maxMs: number;
  /** Between two looks at the rights behind all that is open. Facts are remembered for 0.9 s: together they stay within a second. */
  readonly sweepMs: number;
}

export const RELAY_SWEEP_MS = 100;
/** A token's end ends nothing that it has opened; but once a day whoever is there must show a fresh one. */
export const RELAY_MAX_MS = 24 * 3_600_000;

interface OpenRelay {
  readonly openedAt: number;
  readonly cut: () => void;
}

/** Everything that is open through the relay, by the token that opened it: cut when the right behind that token is gone (decision 0025). */
export class OpenRelays {
  readonly #deps: OpenRelaysDeps;
  /** The claims of one token are one object, as long as it is remembered. */
  readonly #byToken = new Map<WorkloadClaims, Set<OpenRelay>>();
  #timer: NodeJS.Timeout | null = null;
  #sweeping = false;

  constructor(deps: OpenRelaysDeps) {
    this.#deps = deps;
  }

  /** @param cut ends it at once. @returns to be called when it has ended. */
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

  /** Looks no more; what is open stays open. */
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
      // A store that is away says nothing about anybody's right: what runs goes on.
      return !isRefusal(error);
    }
  }
}

function isRefusal(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "invalid_credential";
}
