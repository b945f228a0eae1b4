import type { Candidate, ModelCatalog, ModelEntry, ResolvedModel } from "@fairlead/inference/calls/model-catalog";
import type { EngineDirectory } from "@fairlead/inference/ports/ports";
import type { Id } from "@fairlead/protocol/values/ids";
import { NODES_GROUP } from "../names/model-name.ts";
import type { ModelDiscovery } from "../providers/model-discovery.ts";
import type { ProviderModel } from "../providers/provider.ts";
import type { ProviderDirectory, UsableProvider } from "../providers/provider-directory.ts";
import { EnginesAway } from "./engines-away.ts";
import { candidatesFor, type KnownModels, type Tunnels } from "./model-candidates.ts";

export interface ProjectModelCatalogDeps {
  readonly directory: Pick<ProviderDirectory, "find">;
  readonly engines: EngineDirectory;
  readonly tunnels: Tunnels;
  readonly discovery: ModelDiscovery;
  /** For calls that name no model in projects without a default; null: none. */
  readonly defaultModel: string | null;
  readonly nodeModels: readonly ProviderModel[];
  /** How long a call may wait for nodes. */
  readonly maxRetryWaitMs: number;
}

type ProjectId = Id<"project">;

/** A project's models: its nodes', its own and the platform's providers', and its aliases. Lookups for calls use memory only. */
export class ProjectModelCatalog implements ModelCatalog {
  readonly #deps: ProjectModelCatalogDeps;
  readonly #nodeModels: ReadonlyMap<string, ProviderModel>;

  constructor(deps: ProjectModelCatalogDeps) {
    this.#deps = deps;
    this.#nodeModels = new Map(deps.nodeModels.map((model) => [model.name, model]));
  }

  async resolve(projectId: ProjectId, name: string): Promise<ResolvedModel> {
    try {
      return { name, candidates: candidatesFor(await this.#known(projectId), name) };
    } catch (error) {
      if (!(error instanceof EnginesAway) || !(await this.#areBack(error))) throw error;
      return { name, candidates: candidatesFor(await this.#known(projectId), name) };
    }
  }

  /** After a server restart daemons reconnect within seconds, sooner than most clients would retry. */
  async #areBack({ awaited }: EnginesAway): Promise<boolean> {
    const { tunnels, maxRetryWaitMs } = this.#deps;
    return awaited.length > 0 && tunnels.arrival(awaited, maxRetryWaitMs);
  }

  async defaultModel(projectId: ProjectId): Promise<string | null> {
    const { defaultModel } = await this.#deps.directory.find(projectId);
    return defaultModel ?? this.#deps.defaultModel;
  }

  async list(projectId: ProjectId): Promise<readonly ModelEntry[]> {
    const known = await this.#known(projectId);
    const names = new Map<string, Owner>();
    const providers = [...known.models.providers.values()];
    const listed = await Promise.all(providers.map((provider) => this.#listed(provider)));
    for (const [index, provider] of providers.entries()) {
      const owner = { name: provider.name, since: provider.since };
      for (const model of listed[index] ?? []) names.set(`${provider.name}/${model}`, owner);
    }
    for (const [name, owner] of ofEngines(known)) if (!names.has(name)) names.set(name, owner);
    for (const [name, { since }] of known.models.aliases) names.set(name, { name: "alias", since });
    return [...names]
      .flatMap(([name, owner]) => answeredEntry(known, name, owner))
      .sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  async entry(projectId: ProjectId, name: string): Promise<ModelEntry> {
    const known = await this.#known(projectId);
    return toEntry(name, ownerOf(known, name), candidatesFor(known, name));
  }

  async #known(projectId: ProjectId): Promise<KnownModels> {
    const { directory, engines, tunnels } = this.#deps;
    const models = await directory.find(projectId);
    return { models, engines: await engines.list(projectId), tunnels, nodeModels: this.#nodeModels };
  }

  async #listed({ facts, listKey, open }: UsableProvider): Promise<readonly string[]> {
    const configured = facts.models.map(({ name }) => name);
    if (!facts.discovery) return configured;
    return [...configured, ...(await this.#deps.discovery.modelsOf({ listKey, open }))];
  }
}

interface Owner {
  /** Name of the provider or node. */
  readonly name: string;
  /** Unix milliseconds. */
  readonly since: number;
}

/** Models of nodes; models on several nodes also appear without a node name. */
function ofEngines({ engines, tunnels }: KnownModels): Map<string, Owner> {
  const names = new Map<string, Owner>();
  const serving = new Map<string, number>();
  for (const { nodeId, identifier, models, since, absence } of engines) {
    const answers = absence === null && tunnels.get(nodeId) !== null;
    for (const model of models) {
      names.set(`${identifier}/${model}`, { name: identifier, since });
      if (!answers) continue;
      const others = serving.get(model) ?? 0;
      if (others > 0) names.set(`${NODES_GROUP}/${model}`, { name: NODES_GROUP, since });
      serving.set(model, others + 1);
    }
  }
  return names;
}

function ownerOf({ models, engines }: KnownModels, name: string): Owner {
  const alias = models.aliases.get(name);
  if (alias !== undefined) return { name: "alias", since: alias.since };
  const first = name.slice(0, name.indexOf("/"));
  const since = models.providers.get(first)?.since ?? engines.find(({ identifier }) => identifier === first)?.since;
  return { name: first, since: since ?? Math.max(0, ...engines.map((engine) => engine.since)) };
}

/** Omits models that no backend can serve at the moment. */
function answeredEntry(known: KnownModels, name: string, owner: Owner): ModelEntry[] {
  try {
    return [toEntry(name, owner, candidatesFor(known, name))];
  } catch {
    return [];
  }
}

function toEntry(id: string, owner: Owner, [first]: readonly Candidate[]): ModelEntry {
  const { contextTokens = null, maxOutputTokens = null, prices = null } = first ?? {};
  return {
    id,
    object: "model",
    created: Math.floor(owner.since / 1000),
    owned_by: owner.name,
    ...(contextTokens === null ? {} : { context_length: contextTokens }),
    ...(maxOutputTokens === null ? {} : { max_output_tokens: maxOutputTokens }),
    ...(prices === null ? {} : { prices: toWire(prices) }),
  };
}

function toWire(prices: NonNullable<Candidate["prices"]>): NonNullable<ModelEntry["prices"]> {
  const { input, cachedInput = input, output, perRequest } = prices;
  return { input, cached_input: cachedInput, output, per_request: perRequest };
}
