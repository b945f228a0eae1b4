import { type EngineConfig, healthSchema } from "@fairlead/protocol/engine-config";
import { WORKLOAD_TYPE_ENGINE, type WorkloadSpec } from "@fairlead/protocol/workload";
import { presetOf } from "./engine-presets.ts";
import { type HeldSecrets, neededSecrets } from "./plan-secrets.ts";
import { withSpecHash } from "./spec-hash.ts";

/** The workload name of a node's engine; the tunnel addresses it by this. */
export const ENGINE_WORKLOAD = "engine";

export interface DesiredStateFacts {
  readonly held?: HeldSecrets;
  /** Number of requested engine restarts. */
  readonly restarts?: number;
}

/** Plans a node's workloads. Pure: the same node, config and facts give byte-identical specs. */
export function planWorkloads(
  nodeId: string,
  config: EngineConfig | null,
  facts: DesiredStateFacts = {},
): WorkloadSpec[] {
  return config ? [engineSpec(nodeId, config, facts)] : [];
}

function engineSpec(
  nodeId: string,
  config: EngineConfig,
  { held = new Map(), restarts = 0 }: DesiredStateFacts,
): WorkloadSpec {
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
    network: { internet: config.network?.internet ?? true },
    ...(config.init === undefined ? {} : { init: config.init }),
    models: config.models ?? (preset.models && [...preset.models]),
    versionPath: preset.versionPath,
    update: config.update ?? preset.update,
    // Changes the spec, so that a restart is rolled out like an update.
    ...(restarts > 0 ? { restarts } : {}),
    secrets: neededSecrets(config, held),
  });
}
