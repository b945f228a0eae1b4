import { type IdentityToken, identityTokenSchema } from "@fairlead/protocol/enrollment";
import type { Clock } from "@fairlead/protocol/values/clock";
import { urlBelow } from "@fairlead/protocol/values/url";
import { type DaemonLog, reasonOf } from "../process/log.ts";
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
  /** Unique per assertion. */
  readonly newNonce: () => string;
  readonly log: DaemonLog;
}

/** The platform host no longer accepts this node's key: the node was deleted or enrolled elsewhere. */
export class IdentityRevoked extends Error {
  override readonly name = "IdentityRevoked";
  /** Only on an explicit error from the platform host; other failures may be temporary. */
  readonly nodeDeleted: boolean;

  constructor(refusal: PlatformError) {
    super(`the platform rejected this node's identity (${refusal.code}): ${refusal.message}`);
    this.nodeDeleted = refusal.code === "node_deleted";
  }
}

const CALL_TIMEOUT_MS = 15_000;
/** Delay between attempts to renew a token that is still valid. */
const RENEWAL_PAUSE_MS = 30_000;

interface Held {
  readonly token: string;
  /** Monotonic time: the node relies on `expiresIn`, never on a wall clock. */
  readonly renewAt: number;
  readonly expiresAt: number;
}

/** The node identity token. Kept in memory only; renewed after two thirds of its lifetime with a signed assertion. */
export class IdentityTokens {
  readonly #deps: IdentityDeps;
  readonly #revoked = Promise.withResolvers<IdentityRevoked>();
  #held: Held | null = null;
  #renewal: Promise<string> | null = null;
  #lastAttempt = Number.NEGATIVE_INFINITY;

  constructor(deps: IdentityDeps) {
    this.#deps = deps;
  }

  /** Resolves when the platform host rejects a fresh assertion. */
  get revoked(): Promise<IdentityRevoked> {
    return this.#revoked.promise;
  }

  /** Stores a token from the enrolment response. */
  accept(token: IdentityToken): void {
    const now = this.#deps.clock.monotonic();
    const lifetime = token.expiresIn * 1000;
    this.#held = { token: token.identityToken, renewAt: now + (lifetime * 2) / 3, expiresAt: now + lifetime };
  }

  /** Drops a token that the platform host rejected; the next call requests a new one. */
  invalidate(token: string): void {
    if (this.#held?.token === token) this.#held = null;
  }

  /** @returns a valid token. @throws IdentityRevoked, or Error while the platform host is unreachable. */
  async token(): Promise<string> {
    const held = this.#held;
    const now = this.#deps.clock.monotonic();
    if (held === null || now >= held.expiresAt) return this.#renew();
    if (now >= held.renewAt && now >= this.#lastAttempt + RENEWAL_PAUSE_MS) {
      this.#renew().catch((error: unknown) => {
        this.#deps.log.warn(
          { reason: reasonOf(error) },
          "could not renew the identity token; the current one is still valid",
        );
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
      // The first rejection may be due to this node's clock; the response contained the server's time.
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
      url: urlBelow(identity.platformUrl, `/v1/nodes/${encodeURIComponent(identity.nodeId)}/identity-tokens`),
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
