import type { HttpUpstreams } from "@fairlead/inference/upstreams/http-upstreams";
import type { UpstreamTransport } from "@fairlead/inference/upstreams/upstream";
import { DomainError } from "@fairlead/protocol/errors";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { Logger } from "pino";
import { FactCache } from "../../access/auth/fact-cache.ts";
import { UnsealError } from "../../access/auth/sealing/sealer.ts";
import type { ModelChanges } from "../names/model-changes.ts";
import type { PlatformProviders } from "./platform-providers.ts";
import { factsOf, type ProviderFacts, type ProviderModel, type ProviderRecord } from "./provider.ts";
import type { ProviderCredentials } from "./provider-credentials.ts";
import type { ProviderStores } from "./provider-stores.ts";

/** A provider with all defaults, and its connection. */
export interface UsableProvider {
  /** Unique across projects. */
  readonly key: string;
  /** Also changes with its settings. */
  readonly listKey: string;
  readonly name: string;
  readonly facts: ProviderFacts;
  /** Null: none, or sealed with a lost master key. */
  readonly credential: string | null;
  readonly credentialLost: boolean;
  readonly models: ReadonlyMap<string, ProviderModel>;
  readonly open: () => UpstreamTransport;
  /** Unix milliseconds. */
  readonly since: number;
}

export interface ProjectModels {
  readonly providers: ReadonlyMap<string, UsableProvider>;
  readonly aliases: ReadonlyMap<string, AliasTargets>;
  /** Null: the server's default. */
  readonly defaultModel: string | null;
}

interface AliasTargets {
  readonly targets: readonly string[];
  readonly since: number;
}

export interface ProviderDirectoryDeps {
  readonly stores: Pick<ProviderStores, "providers" | "aliases">;
  readonly platform: PlatformProviders;
  readonly credentials: ProviderCredentials;
  readonly upstreams: Pick<HttpUpstreams, "open">;
  readonly changes: ModelChanges;
  readonly projects: { defaultModelOf(projectId: string): Promise<string | null> };
  /** Projects' own providers. */
  readonly allowPrivate: boolean;
  readonly clock: Clock;
  readonly log: Logger;
}

const MAX_PROJECTS = 10_000;
/** The same as for known keys while the store does not respond: both are needed for calls. */
const GRACE_MS = 5 * 60_000;

/** A project's providers and aliases for the inference host: read about once a second, and after every change. */
export class ProviderDirectory {
  readonly #deps: ProviderDirectoryDeps;
  readonly #platform: readonly UsableProvider[];
  readonly #byProject: FactCache<ProjectModels>;

  constructor(deps: ProviderDirectoryDeps) {
    this.#deps = deps;
    const { since } = deps.platform;
    this.#platform = [...deps.platform.all.values()].map(({ name, baseUrl, settings, credential }) => {
      const key = providerKey("platform", name);
      const access = { baseUrl, credential, allowPrivate: true };
      return usable({ key, listKey: key, name, facts: factsOf(settings), since }, access, deps.upstreams);
    });
    const read = (projectId: string): Promise<ProjectModels> => this.#read(projectId);
    this.#byProject = new FactCache({ read, clock: deps.clock, max: MAX_PROJECTS, graceMs: GRACE_MS });
    deps.changes.listen((projectId) => this.#byProject.forget(projectId));
  }

  /** Synchronous for cached values, because every call uses it. */
  find(projectId: string): ProjectModels | Promise<ProjectModels> {
    return this.#byProject.find(projectId) as ProjectModels | Promise<ProjectModels>;
  }

  async #read(projectId: string): Promise<ProjectModels> {
    const { stores, projects } = this.#deps;
    const [records, aliases, defaultModel] = await Promise.all([
      stores.providers.list(projectId),
      stores.aliases.list(projectId),
      projects.defaultModelOf(projectId),
    ]);
    const own = await Promise.all(records.map((record) => this.#ownProvider(record)));
    return {
      // A project's provider keeps a name that the platform uses later, so that its calls do not change their target.
      providers: new Map([...this.#platform, ...own].map((provider) => [provider.name, provider])),
      aliases: new Map(aliases.map(({ name, targets, createdAt }) => [name, { targets, since: createdAt }])),
      defaultModel,
    };
  }

  async #ownProvider(record: ProviderRecord): Promise<UsableProvider> {
    const { projectId, name, baseUrl, settings, createdAt, updatedAt } = record;
    const { upstreams, allowPrivate } = this.#deps;
    const credential = await this.#credentialOf(record);
    const key = providerKey(projectId, name);
    const identity = { key, listKey: `${key}:${updatedAt}`, name, facts: factsOf(settings), since: createdAt };
    const credentialLost = credential === null && record.sealedCredential !== null;
    return usable(identity, { baseUrl, credential, credentialLost, allowPrivate }, upstreams);
  }

  /** A credential sealed with a lost master key must not fail the rest: the provider rejects the call, and its check explains why. */
  async #credentialOf(record: ProviderRecord): Promise<string | null> {
    try {
      return await this.#deps.credentials.open(record);
    } catch (error) {
      if (!(error instanceof UnsealError)) throw error;
      const { projectId, name } = record;
      this.#deps.log.warn({ projectId, provider: name, err: error }, "a provider's credential cannot be decrypted");
      return null;
    }
  }
}

/** @param owner a project's id, or `platform`. */
export function providerKey(owner: string, name: string): string {
  return `${owner}:${name}`;
}

interface Access {
  readonly baseUrl: string;
  readonly credential: string | null;
  readonly credentialLost?: boolean;
  /** Platform providers may use private addresses, where engines often are. */
  readonly allowPrivate: boolean;
}

function usable(
  identity: Omit<UsableProvider, "models" | "open" | "credential" | "credentialLost">,
  { baseUrl, credential, credentialLost = false, allowPrivate }: Access,
  upstreams: Pick<HttpUpstreams, "open">,
): UsableProvider {
  const { facts, key } = identity;
  const { connectMs } = facts.timeouts;
  const headers = headersOf(facts, credential);
  const upstream = upstreams.open({ id: key, baseUrl, headers, allowPrivate, connectMs });
  return {
    ...identity,
    credential,
    credentialLost,
    models: new Map(facts.models.map((model) => [model.name, model])),
    open: () => {
      // Written while `providers.allowPrivate` was on.
      if (!allowPrivate && !baseUrl.startsWith("https:")) throw plainHttp(identity.name);
      return upstream;
    },
  };
}

function plainHttp(name: string): DomainError {
  const message = `The provider "${name}" has a plain http address, which this platform no longer allows.`;
  return new DomainError("not_configured", message);
}

/** Last, so that no header rule can replace the credential. */
export function headersOf(
  { headers, credential: form }: Pick<ProviderFacts, "headers" | "credential">,
  credential: string | null,
): Readonly<Record<string, string>> {
  if (credential === null) return headers;
  return { ...headers, [form.header]: form.scheme === "" ? credential : `${form.scheme} ${credential}` };
}
