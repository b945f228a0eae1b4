import { DomainError } from "@fairlead/protocol/errors";
import type { Candidate } from "../inference/model-catalog.ts";
import type { EngineTarget } from "../inference/ports.ts";
import { noRunningEngine, TunnelUpstream } from "../inference/tunnel-upstream.ts";
import type { TunnelTransport } from "../tunnel/tunnel-transport.ts";
import { NODES_GROUP, type SplitName, splitModelName } from "./model-name.ts";
import type { ProviderModel } from "./provider.ts";
import type { ProjectModels, UsableProvider } from "./provider-directory.ts";

/** From a model's name to the places that serve it, by what is known of the project just now. */

export interface Tunnels {
  get(nodeId: string): TunnelTransport | null;
}

export interface KnownModels {
  readonly models: ProjectModels;
  readonly engines: readonly EngineTarget[];
  readonly tunnels: Tunnels;
  /** What is known of engines' models: of one, or of all others by the name `*`. */
  readonly nodeModels: ReadonlyMap<string, ProviderModel>;
}

/**
 * The preferred one first; those of the same rank are as good as each other. Never none.
 * @throws DomainError model_not_found, no_running_engine
 */
export function candidatesFor(known: KnownModels, name: string): readonly Candidate[] {
  const alias = known.models.aliases.get(name);
  const targets = alias?.targets ?? [name];
  const found = targets.map((target, rank) => candidatesOfTarget(known, target, rank));
  const candidates = found.flatMap((places) => places ?? []);
  if (candidates.length > 0) return candidates;
  // Known, with nobody to answer just now.
  if (found.some((places) => places !== null)) throw noRunningEngine();
  throw modelNotFound(name, alias !== undefined);
}

/** @returns none where everything that serves it is away just now; null where nothing ever did. */
function candidatesOfTarget(known: KnownModels, target: string, rank: number): readonly Candidate[] | null {
  const split = splitModelName(target);
  if (split === null) return null;
  const provider = known.models.providers.get(split.provider);
  if (provider !== undefined) return ofProvider(provider, split.model, rank);
  const engine = known.engines.find(({ identifier }) => identifier === split.provider);
  if (engine !== undefined) return ofNode(known, { engine, model: split.model, rank });
  return split.provider === NODES_GROUP ? ofEveryNode(known, split, rank) : null;
}

/** Only models that somebody named close the list: a discovered one may be late, and the provider knows best what it serves. */
function ofProvider(provider: UsableProvider, model: string, rank: number): readonly Candidate[] | null {
  const { facts, models, key, name, open } = provider;
  const details = models.get(model);
  if (details === undefined && !facts.discovery && models.size > 0) return null;
  const { protocols, quirks: chat, timeouts, forwardHeaders } = facts;
  return [
    {
      ...detailsOf(details),
      key,
      upstreamId: name,
      kind: "provider",
      rank,
      model,
      protocols,
      chat,
      timeouts,
      forwardHeaders,
      open,
    },
  ];
}

function ofEveryNode(known: KnownModels, { model }: SplitName, rank: number): readonly Candidate[] | null {
  const found = known.engines
    .filter(({ models }) => models.includes(model))
    .map((engine) => ofNode(known, { engine, model, rank }));
  return found.length === 0 ? null : found.flatMap((places) => places ?? []);
}

interface NodePlace {
  readonly engine: EngineTarget;
  readonly model: string;
  readonly rank: number;
}

function ofNode({ tunnels, nodeModels }: KnownModels, { engine, model, rank }: NodePlace): readonly Candidate[] | null {
  const tunnel = engine.ready ? tunnels.get(engine.nodeId) : null;
  if (tunnel === null) return [];
  if (!engine.models.includes(model)) return null;
  return [
    {
      ...detailsOf(nodeModels.get(model) ?? nodeModels.get(EVERY_OTHER)),
      key: engine.nodeId,
      upstreamId: `node:${engine.identifier}`,
      kind: "node",
      rank,
      model,
      protocols: engine.protocols,
      chat: engine.chat,
      forwardHeaders: [],
      open: () => new TunnelUpstream(tunnel, engine.workload),
    },
  ];
}

/** In the settings of engines' models. */
export const EVERY_OTHER = "*";

type Details = Pick<Candidate, "contextTokens" | "maxOutputTokens" | "prices">;

export function detailsOf(model: ProviderModel | undefined): Details {
  const { contextTokens = null, maxOutputTokens = null, prices = null } = model ?? {};
  return { contextTokens, maxOutputTokens, prices };
}

function modelNotFound(name: string, isAlias: boolean): DomainError {
  const message = isAlias
    ? `None of the models that the alias \`${name}\` stands for is there any more; its targets want a change.`
    : `There is no model \`${name}\` in this project. Names have the form <provider>/<model>, or are aliases; GET /v1/models on the inference host lists them.`;
  return new DomainError("model_not_found", message, { param: "model" });
}
