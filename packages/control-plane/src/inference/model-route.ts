import { DomainError } from "@fairlead/protocol/errors";
import type { Id } from "@fairlead/protocol/ids";
import type { TunnelTransport } from "../tunnel/tunnel-transport.ts";
import type { EngineDirectory, EngineTarget } from "./ports.ts";
import { noRunningEngine, TunnelUpstream } from "./tunnel-upstream.ts";
import type { UpstreamTransport } from "./upstream.ts";

/** From a model's name to the upstream that serves it: the first `/` splits, the rest may hold more. */

export interface Tunnels {
  get(nodeId: string): TunnelTransport | null;
}

export interface ModelRoute {
  readonly upstream: UpstreamTransport;
  readonly target: EngineTarget;
  /** The name as the upstream knows it. */
  readonly model: string;
}

/** An entry of `GET /v1/models`, in the form that SDKs know. */
export interface ModelEntry {
  readonly id: string;
  readonly object: "model";
  /** Unix seconds. */
  readonly created: number;
  readonly owned_by: string;
}

export class ModelRouter {
  readonly #engines: EngineDirectory;
  readonly #tunnels: Tunnels;

  constructor(engines: EngineDirectory, tunnels: Tunnels) {
    this.#engines = engines;
    this.#tunnels = tunnels;
  }

  /** @throws DomainError `model_not_found` for unknown or not yours, `no_running_engine` for known but not running. */
  async route(projectId: Id<"project">, name: string): Promise<ModelRoute> {
    const slash = name.indexOf("/");
    const target = slash > 0 ? await this.#engines.find(projectId, name.slice(0, slash)) : null;
    if (target === null) throw modelNotFound(name);
    const tunnel = this.#tunnelOf(target);
    if (tunnel === null) throw noRunningEngine();
    const model = name.slice(slash + 1);
    if (!target.models.includes(model)) throw modelNotFound(name);
    return { upstream: new TunnelUpstream(tunnel, target.workload), target, model };
  }

  /** @returns what would be answered just now, by name. */
  async list(projectId: Id<"project">): Promise<ModelEntry[]> {
    const targets = await this.#engines.list(projectId);
    return targets
      .filter((target) => this.#tunnelOf(target) !== null)
      .flatMap((target) => target.models.map((model) => modelEntry(target, model)))
      .sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  #tunnelOf(target: EngineTarget): TunnelTransport | null {
    return target.ready ? this.#tunnels.get(target.nodeId) : null;
  }
}

export function modelEntry(target: EngineTarget, model: string): ModelEntry {
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
