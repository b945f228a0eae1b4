import { isDeepStrictEqual } from "node:util";
import type { HttpUpstreams } from "@fairlead/inference/upstreams/http-upstreams";
import { DomainError } from "@fairlead/protocol/errors";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { Kysely } from "kysely";
import type { AuditEntry } from "../../access/audit/audit.ts";
import type { AuditService } from "../../access/audit/audit-service.ts";
import type { ProjectAccess } from "../../access/auth/access.ts";
import type { UserPrincipal } from "../../access/auth/principal.ts";
import { always, type Once } from "../../access/idempotency/once.ts";
import type { Database } from "../../installation/db/tables/schema.ts";
import type { ModelChanges } from "../names/model-changes.ts";
import type { ProjectNames } from "../names/project-names.ts";
import { acceptBaseUrl, type BaseUrlRules } from "./base-url.ts";
import type { PlatformProviders } from "./platform-providers.ts";
import {
  type ProviderRecord,
  type ProviderSettings,
  providerResource,
  type ToldProvider,
  toldProvider,
} from "./provider.ts";
import type { ProviderCredentials } from "./provider-credentials.ts";
import { providerKey } from "./provider-directory.ts";
import { PROVIDER_PRESETS } from "./provider-presets.ts";
import type { ProviderStores } from "./provider-stores.ts";

export interface ProviderServiceDeps {
  readonly stores: ProviderStores;
  readonly names: ProjectNames;
  readonly platform: PlatformProviders;
  readonly credentials: ProviderCredentials;
  readonly urls: BaseUrlRules;
  readonly changes: ModelChanges;
  readonly upstreams: Pick<HttpUpstreams, "forget">;
  readonly access: ProjectAccess;
  readonly audit: AuditService;
  readonly clock: Clock;
}

export interface ProviderName {
  readonly projectId: string;
  readonly name: string;
}

export interface CreateProvider extends ProviderName {
  /** Undefined: the preset's. */
  readonly baseUrl: string | undefined;
  readonly credential: string | undefined;
  readonly settings: ProviderSettings;
}

type Changeable = Omit<ProviderSettings, "preset">;

/** Omitted fields are unchanged; null restores the preset's value, or removes the credential. */
export interface ProviderChange extends ProviderName {
  readonly baseUrl?: string | undefined;
  readonly credential?: string | null | undefined;
  readonly settings: { readonly [F in keyof Changeable]?: Changeable[F] | null | undefined };
}

const MAX_PROVIDERS = 100;

/** A project's own providers, and read access to the platform's. Credentials are never returned. */
export class ProviderService {
  readonly #deps: ProviderServiceDeps;

  constructor(deps: ProviderServiceDeps) {
    this.#deps = deps;
  }

  /** Sorted by name, including the platform's. `page.after` is a name. @throws DomainError not_found */
  async list(
    caller: UserPrincipal,
    projectId: string,
    page: { readonly after: string | null; readonly limit: number },
  ): Promise<readonly ToldProvider[]> {
    const { access, stores, platform } = this.#deps;
    await access.require(caller, projectId, "provider.read");
    const own = (await stores.providers.list(projectId)).map(toldProvider);
    const names = new Set(own.map(({ name }) => name));
    const all = [...own, ...platform.told().filter(({ name }) => !names.has(name))];
    return all
      .sort((a, b) => (a.name < b.name ? -1 : 1))
      .filter(({ name }) => page.after === null || name > page.after)
      .slice(0, page.limit);
  }

  /** @throws DomainError not_found */
  async get(caller: UserPrincipal, { projectId, name }: ProviderName): Promise<ToldProvider> {
    const { access, stores, platform } = this.#deps;
    await access.require(caller, projectId, "provider.read");
    const own = await stores.providers.find(projectId, name);
    const found = own === null ? platform.find(name) : toldProvider(own);
    if (found === null) throw providerNotFound();
    return found;
  }

  /** @throws DomainError not_found, permission_denied, project_deleting, already_exists, invalid_request */
  async create(caller: UserPrincipal, input: CreateProvider, once: Once<ToldProvider> = always): Promise<ToldProvider> {
    const { projectId, name, settings } = input;
    const { access, stores, names, credentials, changes, clock } = this.#deps;
    await access.require(caller, projectId, "provider.manage");
    const baseUrl = await this.#baseUrlOf(input);
    const owner = { projectId, name, baseUrl };
    const sealed = input.credential === undefined ? null : await credentials.seal(owner, input.credential);
    const now = clock.now();
    const record: ProviderRecord = {
      ...owner,
      userId: caller.userId,
      settings,
      sealedCredential: sealed,
      createdAt: now,
      updatedAt: now,
    };
    const created = await stores.transaction(async (inside, transaction) => {
      await access.requireWithin(transaction, { caller, projectId, operation: "provider.manage" });
      return once(transaction, async () => {
        await names.requireFree(transaction, owner);
        if ((await inside.providers.list(projectId)).length >= MAX_PROVIDERS) throw tooMany();
        await inside.providers.insert(record);
        const detail = { preset: settings.preset, baseUrl, credential: sealed !== null };
        await this.#record(transaction, owner, { actor: caller, action: "provider.create", detail });
        return toldProvider(record);
      });
    });
    changes.emit(projectId);
    return created;
  }

  /**
   * A new base URL clears the credential, which was meant for the old one, unless a new credential is set as well.
   * @throws DomainError not_found, permission_denied, project_deleting, invalid_request
   */
  async update(caller: UserPrincipal, change: ProviderChange): Promise<ToldProvider> {
    const { projectId, name } = change;
    const { access, stores, urls, changes } = this.#deps;
    await this.#requireOwn(caller, change);
    const baseUrl = change.baseUrl === undefined ? undefined : await acceptBaseUrl(change.baseUrl, urls);
    const updated = await stores.transaction(async (inside, transaction) => {
      await access.requireWithin(transaction, { caller, projectId, operation: "provider.manage" });
      const current = await inside.providers.find(projectId, name);
      if (current === null) throw providerNotFound();
      const { record, fields } = await this.#changed(current, { ...change, baseUrl });
      if (fields.length === 0) return current;
      await inside.providers.update(record);
      const detail = { fields: fields.join(","), credential: record.sealedCredential !== null };
      await this.#record(transaction, record, { actor: caller, action: "provider.update", detail });
      return record;
    });
    changes.emit(projectId);
    return toldProvider(updated);
  }

  /** @throws DomainError not_found, permission_denied, project_deleting */
  async delete(caller: UserPrincipal, provider: ProviderName): Promise<void> {
    const { projectId, name } = provider;
    const { access, stores, changes } = this.#deps;
    await this.#requireOwn(caller, provider);
    await stores.transaction(async (inside, transaction) => {
      await access.requireWithin(transaction, { caller, projectId, operation: "provider.manage" });
      if ((await inside.providers.find(projectId, name)) === null) throw providerNotFound();
      await inside.providers.delete(projectId, name);
      await this.#record(transaction, provider, { actor: caller, action: "provider.delete" });
    });
    this.#deps.upstreams.forget(providerKey(projectId, name));
    changes.emit(projectId);
  }

  async #baseUrlOf({ baseUrl, settings }: CreateProvider): Promise<string> {
    const preset = settings.preset === null ? null : PROVIDER_PRESETS[settings.preset];
    const text = baseUrl ?? preset?.baseUrl;
    if (text !== undefined && text !== null) return acceptBaseUrl(text, this.#deps.urls);
    const why =
      preset === null ? "is missing; only a preset can provide it" : "is missing; it differs for every customer";
    throw new DomainError("invalid_request", `\`baseUrl\`: ${why}.`, { param: "baseUrl" });
  }

  /** Platform providers are visible to everyone and changed only in the server's settings. */
  async #requireOwn(caller: UserPrincipal, { projectId, name }: ProviderName): Promise<void> {
    const { access, stores, platform } = this.#deps;
    await access.require(caller, projectId, "provider.manage");
    if ((await stores.providers.find(projectId, name)) !== null) return;
    if (platform.find(name) === null) throw providerNotFound();
    throw new DomainError(
      "permission_denied",
      `"${name}" is a provider of the platform, which can be changed only in the server's settings.`,
    );
  }

  async #changed(
    current: ProviderRecord,
    change: ProviderChange,
  ): Promise<{ readonly record: ProviderRecord; readonly fields: readonly string[] }> {
    const { baseUrl = current.baseUrl, credential } = change;
    const moved = baseUrl !== current.baseUrl;
    const settings = applied(current.settings, change.settings);
    const owner = { ...current, baseUrl };
    const kept = moved ? null : current.sealedCredential;
    const sealed = typeof credential === "string" ? await this.#deps.credentials.seal(owner, credential) : null;
    const record: ProviderRecord = {
      ...owner,
      settings,
      sealedCredential: credential === undefined ? kept : sealed,
      updatedAt: this.#deps.clock.now(),
    };
    const fields = changedFields(current.settings, settings);
    if (moved) fields.push("baseUrl");
    if (record.sealedCredential !== current.sealedCredential) fields.push("credential");
    return { record, fields };
  }

  async #record(
    transaction: Kysely<Database>,
    { projectId, name }: ProviderName,
    entry: Pick<AuditEntry, "actor" | "action" | "detail">,
  ): Promise<void> {
    await this.#deps.audit.record(transaction, { ...entry, projectId, resource: providerResource(name) });
  }
}

export function providerNotFound(): DomainError {
  return new DomainError("not_found", "This project has no such provider.");
}

function tooMany(): DomainError {
  return new DomainError(
    "invalid_request",
    `The project has the maximum of ${MAX_PROVIDERS} providers. Delete one first.`,
  );
}

function applied(current: ProviderSettings, change: ProviderChange["settings"]): ProviderSettings {
  const next: Record<string, unknown> = { ...current };
  for (const [field, value] of Object.entries(change)) {
    if (value === null) delete next[field];
    else if (value !== undefined) next[field] = value;
  }
  return next as ProviderSettings;
}

function changedFields(before: ProviderSettings, after: ProviderSettings): string[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]) as ReadonlySet<keyof ProviderSettings>;
  return [...names].filter((name) => !isDeepStrictEqual(before[name], after[name]));
}
