import { DomainError } from "@fairlead/protocol/errors";
import type { Id } from "@fairlead/protocol/ids";
import type { TunnelTransport } from "../tunnel/tunnel-transport.ts";
import type { ModelCatalog, ModelEntry, ResolvedModel } from "./model-catalog.ts";
import type { EngineDirectory, EngineTarget } from "./ports.ts";
import { noRunningEngine, TunnelUpstream } from "./tunnel-upstream.ts";

/** From a model's name to the upstream that serves it: the first `/` splits, the rest may hold more. */

export interface Tunnels {
  get(nodeId: string): TunnelTransport | null;
}

interface Route {
  readonly target: EngineTarget;
  readonly tunnel: TunnelTransport;
  /** The name as the upstream knows it. */
  readonly model: string;
}

export class ModelRouter implements ModelCatalog {
  readonly #engines: EngineDirectory;
  readonly #tunnels: Tunnels;

  constructor(engines: EngineDirectory, tunnels: Tunnels) {
    this.#engines = engines;
    this.#tunnels = tunnels;
  }

  async resolve(projectId: Id<"project">, name: string): Promise<ResolvedModel> {
    const { target, tunnel, model } = await this.#route(projectId, name);
    return {
      name,
      candidates: [
        {
          upstreamId: `node:${target.identifier}`,
          kind: "node",
          model,
          protocols: ["chat"],
          open: () => new TunnelUpstream(tunnel, target.workload),
        },
      ],
    };
  }

  async defaultModel(_projectId: Id<"project">): Promise<null> {
    return null;
  }

  async list(projectId: Id<"project">): Promise<ModelEntry[]> {
    const targets = await this.#engines.list(projectId);
    return targets
      .filter((target) => this.#tunnelOf(target) !== null)
      .flatMap((target) => target.models.map((model) => modelEntry(target, model)))
      .sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  async entry(projectId: Id<"project">, name: string): Promise<ModelEntry> {
    const { target, model } = await this.#route(projectId, name);
    return modelEntry(target, model);
  }

  async #route(projectId: Id<"project">, name: string): Promise<Route> {
    const slash = name.indexOf("/");
    const target = slash > 0 ? await this.#engines.find(projectId, name.slice(0, slash)) : null;
    if (target === null) throw modelNotFound(name);
    const tunnel = this.#tunnelOf(target);
    if (tunnel === null) throw noRunningEngine();
    const model = name.slice(slash + 1);
    if (!target.models.includes(model)) throw modelNotFound(name);
    return { target, tunnel, model };
  }

  #tunnelOf(target: EngineTarget): TunnelTransport | null {
    return target.ready ? this.#tunnels.get(target.nodeId) : null;
  }
}

function modelEntry(target: EngineTarget, model: string): ModelEntry {
  return {
    id: `${target.identifier}/${model}`,
    object: "model",
    created: Math.floor(target.since / 1000),
    owned_by: target.identifier,
  };
}

function modelNotFound(name: string): DomainError {
  const message = `There is no model \`${name}\` for this key. Names have the form <provider>/<model>; GET /v1/models lists them.`;
  return new DomainError("model_not_found", message, { param: "model" });
}
