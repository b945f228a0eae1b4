import { type EngineConfig, healthSchema } from "@fairlead/protocol/engine-config";
import { WORKLOAD_TYPE_ENGINE, type WorkloadSpec } from "@fairlead/protocol/workload";
import { presetOf } from "./engine-presets.ts";
import { type HeldSecrets, neededSecrets } from "./plan-secrets.ts";
import { withSpecHash } from "./spec-hash.ts";

/** The name of a node's engine among its workloads: the tunnel addresses it by this. */
export const ENGINE_WORKLOAD = "engine";

export interface PlanFacts {
  readonly held?: HeldSecrets;
  /** How often somebody had the engine started anew. */
  readonly restarts?: number;
}

/** Which workloads a node shall run. Pure: the same node, config and facts give the same specs, byte for byte. */
export function planWorkloads(nodeId: string, config: EngineConfig | null, facts: PlanFacts = {}): WorkloadSpec[] {
  return config ? [engineSpec(nodeId, config, facts)] : [];
}

function engineSpec(nodeId: string, config: EngineConfig, { held = new Map(), restarts = 0 }: PlanFacts): WorkloadSpec {
  const preset = presetOf(config);
  const image = config.image ?? preset.image;
  if (image === null) throw new TypeError("an engine config without an image passed its schema");
  const port = config.port ?? preset.port;
  return withSpecHash({
    workloadId: `${nodeId}-${ENGINE_WORKLOAD}`,
    workloadType: WORKLOAD_TYPE_ENGINE,
    name: ENGINE_WORKLOAD,
    image,
    command: config.command ?? [],
    args: config.args ?? [...preset.args],
    env: { ...preset.env(port), ...config.env },
    port,
    health: healthSchema.parse({ ...preset.health, ...config.health }),
    volumes: config.volumes ?? [...preset.volumes],
    resources: { ...preset.resources, ...config.resources },
    models: config.models ?? (preset.models && [...preset.models]),
    versionPath: preset.versionPath,
    update: config.update ?? preset.update,
    // A spec of its own, so that a restart goes the way of an update.
    ...(restarts > 0 ? { restarts } : {}),
    secrets: neededSecrets(config, held),
  });
}
