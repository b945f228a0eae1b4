import type { Clock } from "@fairlead/protocol/clock";
import { type IdentityToken, identityTokenSchema } from "@fairlead/protocol/enrollment";
import { type Log, reasonOf } from "../log.ts";
import type { EnrolledIdentity } from "../state/identity-store.ts";
import { type HttpClient, jsonOf } from "./http-client.ts";
import { signAssertion } from "./node-keys.ts";
import { isRefusedForGood, PlatformError } from "./platform-answer.ts";
import type { ServerClock } from "./server-clock.ts";

export interface IdentityDeps {
  readonly identity: EnrolledIdentity;
  readonly http: HttpClient;
  readonly clock: Clock;
  readonly serverClock: ServerClock;
  /** A new value for every assertion. */
  readonly newNonce: () => string;
  readonly log: Log;
}

/** The platform host no longer knows this node's key: it was deleted, or enrolled anew elsewhere. */
export class IdentityRevoked extends Error {
  override readonly name = "IdentityRevoked";
  /** The platform host said so in as many words; anything less may be a mistake that somebody will mend. */
  readonly nodeDeleted: boolean;

  constructor(refusal: PlatformError) {
    super(`the platform refused this node's identity (${refusal.code}): ${refusal.message}`);
    this.nodeDeleted = refusal.code === "node_deleted";
  }
}

const CALL_TIMEOUT_MS = 15_000;
/** Between two attempts to renew a token that still holds. */
const RENEWAL_PAUSE_MS = 30_000;

interface Held {
  readonly token: string;
  /** By the monotonic clock: the node trusts `expiresIn`, never a wall clock (design §5). */
  readonly renewAt: number;
  readonly expiresAt: number;
}

/** The node identity token: in memory only, renewed at a third left by an assertion signed with the node's key. */
export class IdentityTokens {
  readonly #deps: IdentityDeps;
  readonly #revoked = Promise.withResolvers<IdentityRevoked>();
  #held: Held | null = null;
  #renewal: Promise<string> | null = null;
  #lastAttempt = Number.NEGATIVE_INFINITY;

  constructor(deps: IdentityDeps) {
    this.#deps = deps;
  }

  /** Resolves when the platform host itself has turned a fresh assertion down. */
  get revoked(): Promise<IdentityRevoked> {
    return this.#revoked.promise;
  }

  /** Takes over a token that came another way (the enrol answer). */
  accept(token: IdentityToken): void {
    const now = this.#deps.clock.monotonic();
    const lifetime = token.expiresIn * 1000;
    this.#held = { token: token.identityToken, renewAt: now + (lifetime * 2) / 3, expiresAt: now + lifetime };
  }

  /** Drops a token that the platform host did not take; the next call asks for another. */
  invalidate(token: string): void {
    if (this.#held?.token === token) this.#held = null;
  }

  /** @returns a token that holds now. @throws IdentityRevoked, or Error while the platform host cannot be asked. */
  async token(): Promise<string> {
    const held = this.#held;
    const now = this.#deps.clock.monotonic();
    if (held === null || now >= held.expiresAt) return this.#renew();
    if (now >= held.renewAt && now >= this.#lastAttempt + RENEWAL_PAUSE_MS) {
      this.#renew().catch((error: unknown) => {
        this.#deps.log.warn({ reason: reasonOf(error) }, "could not renew the identity; the present one still holds");
      });
    }
    return held.token;
  }

  #renew(): Promise<string> {
    this.#lastAttempt = this.#deps.clock.monotonic();
    this.#renewal ??= this.#ask().finally(() => {
      this.#renewal = null;
    });
    return this.#renewal;
  }

  async #ask(): Promise<string> {
    try {
      // The first refusal may come of this node's own clock; its answer has told the server's time.
      return await this.#exchange().catch((error: unknown) => {
        if (isRefusedForGood(error)) return this.#exchange();
        throw error;
      });
    } catch (error) {
      if (!isRefusedForGood(error)) throw error;
      const revoked = new IdentityRevoked(error);
      this.#revoked.resolve(revoked);
      throw revoked;
    }
  }

  async #exchange(): Promise<string> {
    const { identity, http, serverClock, newNonce } = this.#deps;
    const assertion = await signAssertion(identity, { serverTime: serverClock.now(), jti: newNonce() });
    const answer = await http({
      method: "POST",
      url: new URL(`/v1/nodes/${encodeURIComponent(identity.nodeId)}/identity-tokens`, identity.platformUrl).href,
      body: { assertion },
      timeoutMs: CALL_TIMEOUT_MS,
    });
    serverClock.learnFromDate(answer.headers.date);
    if (answer.status !== 200 && answer.status !== 201) throw new PlatformError(answer);
    const token = identityTokenSchema.parse(jsonOf(answer));
    this.accept(token);
    return token.identityToken;
  }
}
