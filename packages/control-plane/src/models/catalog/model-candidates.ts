import type { Candidate } from "@fairlead/inference/calls/model-catalog";
import type { EngineTarget } from "@fairlead/inference/ports/ports";
import { TunnelUpstream } from "@fairlead/inference/upstreams/tunnel-upstream";
import { DomainError } from "@fairlead/protocol/errors";
import type { TunnelTransport } from "@fairlead/wire/tunnel-transport";
import { NODES_GROUP, type SplitName, splitModelName } from "../names/model-name.ts";
import type { ProviderModel } from "../providers/provider.ts";
import type { ProjectModels, UsableProvider } from "../providers/provider-directory.ts";
import { EnginesAway } from "./engines-away.ts";

/** Resolves a model name to the upstreams that serve it. */

export interface Tunnels {
  get(nodeId: string): TunnelTransport | null;
  /** Since when a node has had no tunnel, Unix milliseconds; null if it has one, or had none since the start. */
  lostAt(nodeId: string): number | null;
  /** Whether daemons may still be reconnecting after a restart. */
  isReturning(): boolean;
  /** Waits for reconnecting daemons. @returns whether one of these nodes has a tunnel now. */
  arrival(nodeIds: readonly string[], maxMs: number): Promise<boolean>;
}

export interface KnownModels {
  readonly models: ProjectModels;
  readonly engines: readonly EngineTarget[];
  readonly tunnels: Tunnels;
  /** Facts about engines' models: by name, or `*` for all others. */
  readonly nodeModels: ReadonlyMap<string, ProviderModel>;
}

/**
 * In order of preference; those of the same rank are equivalent. Never empty.
 * @throws DomainError model_not_found, no_running_engine
 */
export function candidatesFor(known: KnownModels, name: string): readonly Candidate[] {
  const alias = known.models.aliases.get(name);
  const targets = alias?.targets ?? [name];
  const found = targets.map((target, rank) => candidatesOfTarget(known, target, rank));
  const candidates = found.flatMap((places) => places ?? []);
  if (candidates.length > 0) return candidates;
  // Known, but currently unavailable.
  if (found.some((places) => places !== null)) throw new EnginesAway(enginesOf(known, targets), known.tunnels);
  throw modelNotFound(name, alias !== undefined);
}

/** @returns empty if all are unavailable; null if nothing ever served it. */
function candidatesOfTarget(known: KnownModels, target: string, rank: number): readonly Candidate[] | null {
  const split = splitModelName(target);
  if (split === null) return null;
  const provider = known.models.providers.get(split.provider);
  if (provider !== undefined) return ofProvider(provider, split.model, rank);
  const engine = known.engines.find(({ identifier }) => identifier === split.provider);
  if (engine !== undefined) return ofNode(known, { engine, model: split.model, rank });
  return split.provider === NODES_GROUP ? ofEveryNode(known, split, rank) : null;
}

/** Engines that serve one of the names, without duplicates. */
function enginesOf({ engines }: KnownModels, targets: readonly string[]): readonly EngineTarget[] {
  const splits = targets.flatMap((target) => splitModelName(target) ?? []);
  return engines.filter(({ identifier, models }) =>
    splits.some(({ provider, model }) =>
      provider === identifier ? true : provider === NODES_GROUP && models.includes(model),
    ),
  );
}

/** Only configured models restrict the list: a discovered list may be outdated. */
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
  const tunnel = engine.absence === null ? tunnels.get(engine.nodeId) : null;
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
      open: () => new TunnelUpstream(tunnel, engine),
    },
  ];
}

/** From the settings for engines' models. */
export const EVERY_OTHER = "*";

type Details = Pick<Candidate, "contextTokens" | "maxOutputTokens" | "prices">;

export function detailsOf(model: ProviderModel | undefined): Details {
  const { contextTokens = null, maxOutputTokens = null, prices = null } = model ?? {};
  return { contextTokens, maxOutputTokens, prices };
}

function modelNotFound(name: string, isAlias: boolean): DomainError {
  const message = isAlias
    ? `The models of the alias \`${name}\` no longer exist. Update its targets.`
    : `There is no model \`${name}\` in this project. Names have the form <provider>/<model>, or are aliases. GET /v1/models on the inference host lists them.`;
  return new DomainError("model_not_found", message, { param: "model" });
}
