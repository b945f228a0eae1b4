import type { Clock } from "@fairlead/protocol/clock";
import { BOOTSTRAP_TOKEN_PREFIX } from "@fairlead/protocol/enrollment";
import { DomainError } from "@fairlead/protocol/errors";
import type { IdSource, KeyId, ProjectId } from "@fairlead/protocol/ids";
import type { Kysely } from "kysely";
import { LRUCache } from "lru-cache";
import type { ProjectAccess } from "../auth/access.ts";
import type { KeyPrincipal, UserPrincipal } from "../auth/principal.ts";
import type { Database } from "../db/schema.ts";
import { always, type Once } from "../idempotency/once.ts";
import { hashKey, type KeyRecord, makeKey, parseKey } from "./key.ts";
import { KeyStore } from "./key-store.ts";

export interface KeyServiceDeps {
  readonly keys: KeyStore;
  readonly access: ProjectAccess;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly randomBytes: (n: number) => Uint8Array;
  /** Named to callers who bring a session token to the inference host. */
  readonly publicUrl: string;
}

/** `value` is the whole key, shown this once. */
export interface CreatedKey {
  readonly key: KeyRecord;
  readonly value: string;
}

/** How long a checked key is believed (design §5, Revocation), and how many are remembered. */
const CACHE_MS = 1000;
const CACHE_ENTRIES = 10_000;

/** Project keys: made on the platform host, checked by the inference host. */
export class KeyService {
  readonly #deps: KeyServiceDeps;
  readonly #checked: LRUCache<string, KeyRecord>;

  constructor(deps: KeyServiceDeps) {
    this.#deps = deps;
    this.#checked = new LRUCache({
      max: CACHE_ENTRIES,
      ttl: CACHE_MS,
      ttlResolution: 0,
      perf: { now: () => deps.clock.monotonic() },
    });
  }

  /** @throws DomainError not_found, permission_denied */
  async create(
    caller: UserPrincipal,
    input: { readonly projectId: string; readonly name: string },
    once: Once<CreatedKey> = always,
  ): Promise<CreatedKey> {
    const { keys, access, clock, ids, randomBytes } = this.#deps;
    await access.require(caller, input.projectId, "key.create");
    const { value, publicId } = makeKey(randomBytes);
    const key: KeyRecord = {
      id: ids.next("key"),
      projectId: input.projectId,
      userId: caller.userId,
      name: input.name,
      publicId,
      secretHash: hashKey(value),
      enabled: true,
      expiresAt: null,
      createdAt: clock.now(),
    };
    return keys.transaction(async (store, transaction) => {
      await access.requireWithin(transaction, { caller, projectId: input.projectId, operation: "key.create" });
      return once(transaction, async () => {
        await store.insert(key);
        return { key, value };
      });
    });
  }

  /** For whoever leaves a project. The caller hands the ids to `forget` after its commit. */
  async disableKeysOf(transaction: Kysely<Database>, projectId: string, userId: string): Promise<readonly string[]> {
    return new KeyStore(transaction).disable(projectId, userId);
  }

  /** All of a project that is being deleted, like `disableKeysOf`. */
  async disableKeysOfProject(transaction: Kysely<Database>, projectId: string): Promise<readonly string[]> {
    return new KeyStore(transaction).disable(projectId, null);
  }

  /** Keys that changed are looked at anew from now on, instead of within a second. */
  forget(keyIds: readonly string[]): void {
    if (keyIds.length === 0) return;
    const changed = new Set(keyIds);
    for (const [hash, key] of this.#checked.entries()) {
      if (changed.has(key.id)) this.#checked.delete(hash);
    }
  }

  /**
   * Whose key this is.
   * @param secret the whole key as the caller sent it.
   * @throws DomainError invalid_credential, expired_credential; unavailable when the store cannot be asked.
   */
  async authenticate(secret: string): Promise<KeyPrincipal> {
    if (!parseKey(secret)) throw this.#notAKey(secret);
    const hash = hashKey(secret);
    const key = this.#checked.get(hash) ?? (await this.#look(hash));
    if (!key?.enabled) throw invalid("This project key is unknown, or was disabled.");
    if (key.expiresAt !== null && key.expiresAt <= this.#deps.clock.now()) {
      throw new DomainError("expired_credential", "This project key has run out; create a new one.");
    }
    return { keyId: key.id as KeyId, projectId: key.projectId as ProjectId };
  }

  async #look(hash: string): Promise<KeyRecord | null> {
    try {
      const key = await this.#deps.keys.findByHash(hash);
      if (key) this.#checked.set(hash, key);
      return key;
    } catch (cause) {
      throw new DomainError("unavailable", "The key cannot be checked just now. Try again shortly.", {
        cause,
        retryAfterSeconds: 1,
      });
    }
  }

  #notAKey(secret: string): DomainError {
    // "eyJ" is how every signed token begins: base64url of `{"`.
    if (secret.startsWith("eyJ")) {
      const host = this.#deps.publicUrl;
      return invalid(
        `This is a session or node token; it works on the platform host, ${host}. Send a project key here.`,
      );
    }
    if (secret.startsWith(BOOTSTRAP_TOKEN_PREFIX)) {
      return invalid("This is a bootstrap token; all it can do is enrol its node. Send a project key here.");
    }
    return invalid("This is not a whole project key (`flk_…`); check that it was copied without a gap.");
  }
}

function invalid(message: string): DomainError {
  return new DomainError("invalid_credential", message);
}
