import { hash } from "node:crypto";
import { CLOCK_SKEW_SECONDS } from "@fairlead/protocol/enrollment";
import type { ErrorCode } from "@fairlead/protocol/errors";
import { CONNECT_TOKEN_TTL_SECONDS, workloadAudience } from "@fairlead/protocol/workload-connect";
import { errors, jwtVerify } from "jose";
import { KeysUnavailable, type PlatformKeys } from "./platform-keys.ts";

export interface ConnectCheckDeps {
  readonly keys: Pick<PlatformKeys, "find" | "version">;
  readonly installationId: string;
  readonly nodeId: string;
  /** The platform's time in Unix milliseconds, as known to this node. */
  readonly now: () => number;
}

/** The error code for a rejected token; null if it is accepted. */
export type ConnectRefusal = Extract<ErrorCode, "invalid_credential" | "expired_credential" | "unavailable"> | null;

const ALGORITHM = "EdDSA";
const REMEMBERED = 1000;

/** The second check of workload-connect tokens, independent of the relay's. */
export class ConnectCheck {
  readonly #deps: ConnectCheckDeps;
  /** Cache of verified tokens: SHA-256 of workload and token → expiry. Verifying costs more than the rest of a small call. */
  readonly #good = new Map<string, number>();
  #keysVersion = 0;

  constructor(deps: ConnectCheckDeps) {
    this.#deps = deps;
  }

  async check(token: string, workload: string): Promise<ConnectRefusal> {
    const { keys, now } = this.#deps;
    if (this.#keysVersion !== keys.version) this.#good.clear();
    const digest = hash("sha256", `${workload} ${token}`, "base64url");
    const goodUntil = this.#good.get(digest);
    if (goodUntil !== undefined && now() < goodUntil) return null;
    try {
      const end = await this.#verify(token, workload);
      this.#remember(digest, end);
      return null;
    } catch (error) {
      return refusalOf(error);
    }
  }

  /** @returns the token's expiry in Unix milliseconds, including clock skew. */
  async #verify(token: string, workload: string): Promise<number> {
    const { keys, installationId, nodeId, now } = this.#deps;
    const { payload } = await jwtVerify(token, keys.find, {
      issuer: installationId,
      audience: workloadAudience(nodeId, workload),
      algorithms: [ALGORITHM],
      clockTolerance: CLOCK_SKEW_SECONDS,
      currentDate: new Date(now()),
      // An age limit also rejects tokens from the future.
      maxTokenAge: CONNECT_TOKEN_TTL_SECONDS,
      requiredClaims: ["exp", "iat", "sub"],
    });
    return ((payload.exp ?? 0) + CLOCK_SKEW_SECONDS) * 1000;
  }

  #remember(digest: string, end: number): void {
    this.#keysVersion = this.#deps.keys.version;
    const oldest = this.#good.size >= REMEMBERED ? this.#good.keys().next().value : undefined;
    if (oldest !== undefined) this.#good.delete(oldest);
    this.#good.set(digest, end);
  }
}

function refusalOf(error: unknown): ConnectRefusal {
  if (error instanceof errors.JWTExpired) return "expired_credential";
  if (error instanceof KeysUnavailable) return "unavailable";
  if (error instanceof errors.JOSEError) return "invalid_credential";
  throw error;
}
