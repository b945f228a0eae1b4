import type { KeyPrincipal } from "@fairlead/inference/ports/inference-caller";
import { BOOTSTRAP_TOKEN_PREFIX } from "@fairlead/protocol/enrollment";
import { DomainError } from "@fairlead/protocol/errors";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { KeyId, ProjectId, UserId } from "@fairlead/protocol/values/ids";
import { FactCache } from "../auth/fact-cache.ts";
import { hashKey, type KeyRecord } from "./key.ts";
import { parseKey } from "./key-secret.ts";
import type { KeyStore } from "./key-store.ts";
import type { KeyUse } from "./key-use.ts";

export interface KeyCheckDeps {
  readonly keys: KeyStore;
  readonly use: Pick<KeyUse, "note">;
  readonly clock: Clock;
}

const MAX_KEYS = 10_000;
/** How long a known key keeps working while the store does not respond. */
const GRACE_MS = 5 * 60_000;

/** Authenticates project keys. On the path of every call to the inference host. */
export class KeyCheck {
  readonly #clock: Clock;
  /** By the SHA-256 of the whole key. */
  readonly #known: FactCache<KeyRecord>;

  constructor({ keys, use, clock }: KeyCheckDeps) {
    this.#clock = clock;
    const read = async (hash: string): Promise<KeyRecord | null> => {
      const key = await keys.findByHash(hash);
      if (key?.enabled) use.note(key, hash);
      return key;
    };
    this.#known = new FactCache({ read, clock, max: MAX_KEYS, graceMs: GRACE_MS });
  }

  /**
   * Finds the owner of a key.
   * @param secret the whole key as sent.
   * @throws DomainError invalid_credential, expired_credential; unavailable if the store cannot be read.
   */
  async authenticate(secret: string): Promise<KeyPrincipal> {
    if (parseKey(secret) === null) throw notAKey(secret);
    const hash = hashKey(secret);
    const key = await this.#find(hash);
    if (!key?.enabled) throw invalid("This project key is unknown or disabled.");
    this.#refuseEnded(key, hash);
    return {
      kind: "key",
      keyId: key.id as KeyId,
      projectId: key.projectId as ProjectId,
      userId: key.userId as UserId,
      limits: key.limits,
    };
  }

  /** Makes changes effective immediately instead of within a second. */
  forget(keyIds: readonly string[]): void {
    if (keyIds.length === 0) return;
    const changed = new Set(keyIds);
    this.#known.forgetAll((key) => changed.has(key.id));
  }

  async #find(hash: string): Promise<KeyRecord | null> {
    try {
      return await this.#known.find(hash);
    } catch (cause) {
      const message = "The key cannot be checked at the moment. Retry shortly.";
      throw new DomainError("unavailable", message, { cause, retryAfterSeconds: 1 });
    }
  }

  #refuseEnded({ previous, expiresAt }: KeyRecord, hash: string): void {
    const now = this.#clock.now();
    if (expiresAt !== null && expiresAt <= now) {
      throw new DomainError("expired_credential", "This project key has expired. Create a new one.");
    }
    if (previous?.secretHash === hash && previous.endsAt <= now) {
      const message = "This value of the project key was replaced, and the overlap has ended. Use the new value.";
      throw new DomainError("expired_credential", message);
    }
  }
}

function notAKey(secret: string): DomainError {
  if (secret.startsWith(BOOTSTRAP_TOKEN_PREFIX)) {
    return invalid("This is a bootstrap token, which can only enroll its node. Send a project key here.");
  }
  return invalid("This is not a complete project key (`flk_…`). Check that it was copied in full.");
}

function invalid(message: string): DomainError {
  return new DomainError("invalid_credential", message);
}
