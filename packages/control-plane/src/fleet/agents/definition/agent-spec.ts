import type { Connector } from "@fairlead/protocol/agents";
import { type Health, healthSchema } from "@fairlead/protocol/engine-config";
import { SECRETS_MOUNT_PATH, WORKER_TOKEN_FILE, type WorkloadSecret } from "@fairlead/protocol/secrets";
import { LOCAL_HOST, type PlatformAddress, WORKLOAD_TYPE_AGENT, type WorkloadSpec } from "@fairlead/protocol/workload";
import { withSpecHash } from "../../nodes/desired/spec-hash.ts";
import { secretKey } from "../../secrets/secret-key.ts";
import { type AgentRecord, workloadName } from "./agent.ts";
import { type AgentNeed, agentNeeds } from "./agent-needs.ts";
import { type GuestPreset, guestPreset } from "./guest-presets.ts";

export interface SpecFacts {
  readonly connectors: readonly Connector[];
  /** The agent's secrets by name, with their current versions. */
  readonly held: ReadonlyMap<string, { readonly version: string }>;
  /** The public URL of the inference host. */
  readonly modelsUrl: string;
}

/** An agent's workload. Pure: the same agent and facts give a byte-identical spec. */
export function agentSpec(agent: AgentRecord, { connectors, held, modelsUrl }: SpecFacts): WorkloadSpec {
  const { id, config } = agent;
  const preset = guestPreset(agent.guest);
  const needs = agentNeeds(agent, connectors);
  const internet = config.network?.internet ?? true;
  const models = reachableModels(modelsUrl, internet);
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
    network: { internet, platform: models.platform },
    ...(config.init === undefined ? {} : { init: config.init }),
    secrets: needs.map((need) => workloadSecret(id, need, held)),
    workerToken: true,
    models: [],
    versionPath: null,
    update: config.update ?? preset.update,
    // Changes the spec, so that a new run gets a new container.
    ...(agent.run > 1 ? { restarts: agent.run - 1 } : {}),
  });
}

/** Environment variables of every agent (docs/agents.md). */
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

/** An unknown image without a configured health check is ready while it runs. */
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

/**
 * A container's loopback is not the machine's, and one without internet reaches only the daemon, which forwards to the
 * platform. Names are kept, for certificates; IP addresses get a name.
 */
function reachableModels(
  modelsUrl: string,
  internet: boolean,
): { readonly url: string; readonly platform: PlatformAddress } {
  const url = new URL(modelsUrl);
  const { hostname } = url;
  const port = Number(url.port) || (url.protocol === "https:" ? 443 : 80);
  const isLocal = LOOPBACK.test(hostname);
  const forwarded = isLocal || !internet;
  if (forwarded && (isLocal || isIpAddress(hostname))) url.hostname = LOCAL_HOST;
  const host = isLocal ? "127.0.0.1" : hostname.replace(/^\[|\]$/g, "");
  return { url: withoutSlash(url.href), platform: { name: url.hostname, host, port, forwarded } };
}

function isIpAddress(hostname: string): boolean {
  return /^(?:\[|[\d.]+$)/.test(hostname);
}

function withoutSlash(url: string): string {
  return url.endsWith("/") ? url.slice(0, -1) : url;
}
