import type { Connector } from "@fairlead/protocol/agents";
import { type Health, healthSchema } from "@fairlead/protocol/engine-config";
import { SECRETS_MOUNT_PATH, WORKER_TOKEN_FILE, type WorkloadSecret } from "@fairlead/protocol/secrets";
import { LOCAL_HOST, WORKLOAD_TYPE_AGENT, type WorkloadSpec } from "@fairlead/protocol/workload";
import { withSpecHash } from "../nodes/spec-hash.ts";
import { secretKey } from "../secrets/secret-key.ts";
import { type AgentRecord, workloadName } from "./agent.ts";
import { type AgentNeed, agentNeeds } from "./agent-needs.ts";
import { type GuestPreset, guestPreset } from "./guest-presets.ts";

export interface SpecFacts {
  readonly connectors: readonly Connector[];
  /** Its secrets by name: which value each has now. */
  readonly held: ReadonlyMap<string, { readonly version: string }>;
  /** The inference host's address, as others are told. */
  readonly modelsUrl: string;
}

/** The workload that an agent is. Pure: the same agent and facts give the same spec, byte for byte. */
export function agentSpec(agent: AgentRecord, { connectors, held, modelsUrl }: SpecFacts): WorkloadSpec {
  const { id, config } = agent;
  const preset = guestPreset(agent.guest);
  const needs = agentNeeds(agent, connectors);
  const models = reachableModels(modelsUrl);
  const port = config.port ?? preset.port;
  const env = { ...preset.env, ...tellings(agent, { port, modelsUrl: models.url }), ...paths(needs), ...config.env };
  return withSpecHash({
    workloadId: id,
    workloadType: WORKLOAD_TYPE_AGENT,
    name: workloadName(id),
    image: config.image ?? preset.image,
    command: config.command ?? [...preset.command],
    args: config.args ?? [...preset.args],
    env,
    port,
    health: healthOf(agent, preset),
    volumes: config.volumes ?? [...preset.volumes(id)],
    resources: { ...preset.resources, ...config.resources },
    secrets: needs.map((need) => workloadSecret(id, need, held)),
    workerToken: true,
    ...(models.localPort === null ? {} : { localPorts: [models.localPort] }),
    models: [],
    versionPath: null,
    update: config.update ?? preset.update,
    // A spec of its own, so that a new run is a new container.
    ...(agent.run > 1 ? { restarts: agent.run - 1 } : {}),
  });
}

/** What every agent finds in its environment (docs/agents.md). */
function tellings(
  { id, projectId }: AgentRecord,
  { port, modelsUrl }: { readonly port: number; readonly modelsUrl: string },
): Record<string, string> {
  return {
    FAIRLEAD_AGENT_ID: id,
    FAIRLEAD_MODELS_URL: modelsUrl,
    FAIRLEAD_PROJECT_ID: projectId,
    FAIRLEAD_TOKEN_FILE: `${SECRETS_MOUNT_PATH}/${WORKER_TOKEN_FILE}`,
    OPENAI_BASE_URL: `${modelsUrl}/v1`,
    PORT: String(port),
  };
}

/** An image that nothing is known of, and nothing is said of, is ready while it runs. */
function healthOf({ guest, config }: AgentRecord, preset: GuestPreset): Health {
  const isUnknown = preset.image === guest && config.health === undefined && config.port === undefined;
  const known = isUnknown ? { ...preset.health, probe: "running" } : preset.health;
  return healthSchema.parse({ ...known, ...config.health });
}

function paths(needs: readonly AgentNeed[]): Record<string, string> {
  const files = needs.filter(({ as }) => as === "file");
  return Object.fromEntries(
    files.flatMap(({ name, variable }) => (variable === null ? [] : [[variable, `${SECRETS_MOUNT_PATH}/${name}`]])),
  );
}

function workloadSecret(agentId: string, { name, as, variable }: AgentNeed, held: SpecFacts["held"]): WorkloadSecret {
  const known = as === "env" ? (variable ?? name) : name;
  return {
    name: known,
    key: secretKey("agent", { ownerId: agentId, name }),
    as,
    version: held.get(name)?.version ?? null,
  };
}

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

/** A container's own loopback address is not the machine's, so such an inference host is reached by another name. */
function reachableModels(modelsUrl: string): { readonly url: string; readonly localPort: number | null } {
  const url = new URL(modelsUrl);
  if (!LOOPBACK.test(url.hostname)) return { url: withoutSlash(modelsUrl), localPort: null };
  const localPort = Number(url.port) || (url.protocol === "https:" ? 443 : 80);
  url.hostname = LOCAL_HOST;
  return { url: withoutSlash(url.href), localPort };
}

function withoutSlash(url: string): string {
  return url.endsWith("/") ? url.slice(0, -1) : url;
}
