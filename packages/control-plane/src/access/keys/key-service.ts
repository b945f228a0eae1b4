import type { KeyPrincipal } from "@fairlead/inference/ports/inference-caller";
import { DomainError } from "@fairlead/protocol/errors";
import { NO_LIMITS } from "@fairlead/protocol/key-limits";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { IdSource } from "@fairlead/protocol/values/ids";
import type { Kysely } from "kysely";
import type { Database } from "../../installation/db/tables/schema.ts";
import type { AuditEntry } from "../audit/audit.ts";
import type { AuditService } from "../audit/audit-service.ts";
import type { ProjectAccess } from "../auth/access.ts";
import type { UserPrincipal } from "../auth/principal.ts";
import { always, type Once } from "../idempotency/once.ts";
import { changedFields, hashKey, type KeyRecord, type KeySettings, operationToChange, rotated } from "./key.ts";
import { KeyCheck } from "./key-check.ts";
import { type KeyLimitsChange, mergeLimits } from "./key-limits.ts";
import { makeKey } from "./key-secret.ts";
import { KeyStore } from "./key-store.ts";
import type { KeyUse } from "./key-use.ts";

export interface KeyServiceDeps {
  readonly keys: KeyStore;
  readonly use: Pick<KeyUse, "note">;
  readonly access: ProjectAccess;
  readonly audit: AuditService;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly randomBytes: (n: number) => Uint8Array;
}

export interface KeyName {
  readonly projectId: string;
  readonly id: string;
}

/** Omitted fields are unchanged, or get defaults. Times are Unix milliseconds. */
export interface KeyChange {
  readonly name?: string | undefined;
  readonly enabled?: boolean | undefined;
  readonly expiresAt?: number | null | undefined;
  readonly limits?: KeyLimitsChange | undefined;
}

/** `value` is the whole key, returned only here. */
export interface KeyWithValue {
  readonly key: KeyRecord;
  readonly value: string;
}

/** Project keys: managed on the platform host, checked by the inference host. */
export class KeyService {
  readonly #deps: KeyServiceDeps;
  readonly #check: KeyCheck;

  constructor(deps: KeyServiceDeps) {
    this.#deps = deps;
    this.#check = new KeyCheck(deps);
  }

  /** See `KeyCheck.authenticate`. */
  authenticate(secret: string): Promise<KeyPrincipal> {
    return this.#check.authenticate(secret);
  }

  /** @throws DomainError not_found, permission_denied, project_deleting, invalid_request */
  async create(
    caller: UserPrincipal,
    { projectId, name, ...change }: KeyChange & { readonly projectId: string; readonly name: string },
    once: Once<KeyWithValue> = always,
  ): Promise<KeyWithValue> {
    const { keys, access, clock, ids, randomBytes } = this.#deps;
    await access.require(caller, projectId, "key.create");
    const { value, publicId } = makeKey(randomBytes);
    const key: KeyRecord = {
      ...this.#changed({ name, enabled: true, expiresAt: null, limits: NO_LIMITS }, change),
      id: ids.next("key"),
      projectId,
      userId: caller.userId,
      publicId,
      secretHash: hashKey(value),
      lastUsedAt: null,
      previous: null,
      createdAt: clock.now(),
    };
    return keys.transaction(async (store, transaction) => {
      await access.requireWithin(transaction, { caller, projectId, operation: "key.create" });
      return once(transaction, async () => {
        await store.insert(key);
        await this.#record(transaction, key, { actor: caller, action: "key.create", detail: { keyId: publicId } });
        return { key, value };
      });
    });
  }

  /** All members can list keys, without secrets. `page.userId` null: of all creators. @throws DomainError not_found */
  async list(
    caller: UserPrincipal,
    projectId: string,
    page: { readonly userId: string | null; readonly after: string | null; readonly limit: number },
  ): Promise<readonly KeyRecord[]> {
    await this.#deps.access.require(caller, projectId, "key.list");
    return this.#deps.keys.list(projectId, page);
  }

  /** @throws DomainError not_found */
  async get(caller: UserPrincipal, { projectId, id }: KeyName): Promise<KeyRecord> {
    await this.#deps.access.require(caller, projectId, "key.list");
    return known(await this.#deps.keys.find(projectId, id));
  }

  /** @throws DomainError not_found, permission_denied, project_deleting, invalid_request */
  async update(caller: UserPrincipal, name: KeyName, change: KeyChange): Promise<KeyRecord> {
    const key = await this.#changing(caller, name, async ({ store, transaction, key: current }) => {
      const settings = this.#changed(current, change);
      const fields = changedFields(current, settings);
      if (fields.length === 0) return current;
      const updated = { ...current, ...settings };
      await store.setSettings(name.projectId, name.id, settings);
      const disabled = current.enabled && !settings.enabled;
      if (disabled) await this.#record(transaction, updated, { actor: caller, action: "key.disable" });
      const others = fields.filter((field) => !(disabled && field === "enabled"));
      if (others.length > 0) {
        const detail = { fields: others.join(",") };
        await this.#record(transaction, updated, { actor: caller, action: "key.update", detail });
      }
      return updated;
    });
    this.forget([key.id]);
    return key;
  }

  /**
   * Rotates a key. The current secret keeps working for the given time, older ones stop. That of a disabled key stops immediately, so that
   * enabling the key later does not revive it.
   * @throws DomainError not_found, permission_denied, project_deleting
   */
  async rotate(
    caller: UserPrincipal,
    { overlapSeconds, ...name }: KeyName & { readonly overlapSeconds: number },
    once: Once<KeyWithValue> = always,
  ): Promise<KeyWithValue> {
    const { clock, randomBytes } = this.#deps;
    const { value, publicId } = makeKey(randomBytes);
    const made = await this.#changing(caller, name, ({ store, transaction, key: current }) =>
      once(transaction, async () => {
        const endsAt = overlapSeconds > 0 && current.enabled ? clock.now() + overlapSeconds * 1000 : null;
        const key = rotated(current, { publicId, secretHash: hashKey(value), endsAt });
        await store.setSecrets(name.projectId, name.id, key);
        const detail = {
          keyId: publicId,
          previousKeyId: current.publicId,
          overlapSeconds: endsAt ? overlapSeconds : 0,
        };
        await this.#record(transaction, key, { actor: caller, action: "key.rotate", detail });
        return { key, value };
      }),
    );
    this.forget([name.id]);
    return made;
  }

  /** @throws DomainError not_found, permission_denied, project_deleting */
  async delete(caller: UserPrincipal, name: KeyName): Promise<void> {
    await this.#changing(caller, name, async ({ store, transaction, key }) => {
      await store.delete(name.projectId, name.id);
      await this.#record(transaction, key, { actor: caller, action: "key.delete", detail: { keyId: key.publicId } });
    });
    this.forget([name.id]);
  }

  /** For a member who leaves. The caller passes the ids to `forget` after its commit. */
  async disableKeysOf(transaction: Kysely<Database>, projectId: string, userId: string): Promise<readonly string[]> {
    return new KeyStore(transaction).disable(projectId, userId);
  }

  /** For a deleted project; otherwise like `disableKeysOf`. */
  async disableKeysOfProject(transaction: Kysely<Database>, projectId: string): Promise<readonly string[]> {
    return new KeyStore(transaction).disable(projectId, null);
  }

  /** Makes changes effective immediately instead of within a second. */
  forget(keyIds: readonly string[]): void {
    this.#check.forget(keyIds);
  }

  /** One authorized change of a key, with the project and the key locked. */
  async #changing<T>(caller: UserPrincipal, name: KeyName, work: (held: HeldKey) => Promise<T>): Promise<T> {
    const { keys, access } = this.#deps;
    const { projectId, id } = name;
    const operation = operationToChange(await this.get(caller, name), caller.userId);
    await access.require(caller, projectId, operation);
    return keys.transaction(async (store, transaction) => {
      await access.requireWithin(transaction, { caller, projectId, operation });
      return work({ store, transaction, key: known(await store.findForUpdate(projectId, id)) });
    });
  }

  #changed(current: KeySettings, change: KeyChange): KeySettings {
    const { name = current.name, enabled = current.enabled, expiresAt = current.expiresAt, limits = {} } = change;
    if (expiresAt !== null && expiresAt !== current.expiresAt && expiresAt <= this.#deps.clock.now()) {
      const message = "`expiresAt` is in the past. To disable a key immediately, set `enabled` to false.";
      throw new DomainError("invalid_request", message, { param: "expiresAt" });
    }
    return { name, enabled, expiresAt, limits: mergeLimits(current.limits, limits) };
  }

  async #record(
    transaction: Kysely<Database>,
    { projectId, id, name }: KeyRecord,
    entry: Pick<AuditEntry, "actor" | "action" | "detail">,
  ): Promise<void> {
    await this.#deps.audit.record(transaction, { ...entry, projectId, resource: { type: "key", id, name } });
  }
}

/** A key inside the transaction of its change. */
interface HeldKey {
  readonly store: KeyStore;
  readonly transaction: Kysely<Database>;
  readonly key: KeyRecord;
}

function known(key: KeyRecord | null): KeyRecord {
  if (key) return key;
  throw new DomainError("not_found", "There is no such key in this project.");
}
