import type { Clock } from "@fairlead/protocol/clock";
import { BOOTSTRAP_TOKEN_PREFIX } from "@fairlead/protocol/enrollment";
import { DomainError } from "@fairlead/protocol/errors";
import type { KeyId, ProjectId, UserId } from "@fairlead/protocol/ids";
import { FactCache } from "../auth/fact-cache.ts";
import type { KeyPrincipal } from "../auth/principal.ts";
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
/** How long a known key works on while the store does not answer (design §8, Keys). */
const GRACE_MS = 5 * 60_000;

/** Whether a project key may be used just now. On the way of every call to the inference host. */
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
   * Whose key this is.
   * @param secret the whole key as the caller sent it.
   * @throws DomainError invalid_credential, expired_credential; unavailable when the store cannot be asked.
   */
  async authenticate(secret: string): Promise<KeyPrincipal> {
    if (parseKey(secret) === null) throw notAKey(secret);
    const hash = hashKey(secret);
    const key = await this.#find(hash);
    if (!key?.enabled) throw invalid("This project key is unknown, or was disabled.");
    this.#refuseEnded(key, hash);
    return {
      kind: "key",
      keyId: key.id as KeyId,
      projectId: key.projectId as ProjectId,
      userId: key.userId as UserId,
      limits: key.limits,
    };
  }

  /** Keys that changed are looked at anew from now on, instead of within a second. */
  forget(keyIds: readonly string[]): void {
    if (keyIds.length === 0) return;
    const changed = new Set(keyIds);
    this.#known.forgetAll((key) => changed.has(key.id));
  }

  async #find(hash: string): Promise<KeyRecord | null> {
    try {
      return await this.#known.find(hash);
    } catch (cause) {
      const message = "The key cannot be checked just now. Try again shortly.";
      throw new DomainError("unavailable", message, { cause, retryAfterSeconds: 1 });
    }
  }

  #refuseEnded({ previous, expiresAt }: KeyRecord, hash: string): void {
    const now = this.#clock.now();
    if (expiresAt !== null && expiresAt <= now) {
      throw new DomainError("expired_credential", "This project key has run out; create a new one.");
    }
    if (previous?.secretHash === hash && previous.endsAt <= now) {
      const message =
        "This secret of the project key was replaced, and the time in which both worked is over; use the new one.";
      throw new DomainError("expired_credential", message);
    }
  }
}

function notAKey(secret: string): DomainError {
  if (secret.startsWith(BOOTSTRAP_TOKEN_PREFIX)) {
    return invalid("This is a bootstrap token; all it can do is enrol its node. Send a project key here.");
  }
  return invalid("This is not a whole project key (`flk_…`); check that it was copied without a gap.");
}

function invalid(message: string): DomainError {
  return new DomainError("invalid_credential", message);
}
