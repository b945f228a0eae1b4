import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type AgentLifecycleState, agentSchema } from "@fairlead/protocol/agents";
import { nodeSchema } from "@fairlead/protocol/resources";
import { NO_PROXIES } from "@fairlead/wire/proxy/proxy-rules";
import { pino } from "pino";
import { z } from "zod";
import { openLocalAdmin } from "../../packages/control-plane/src/installation/admin/local-admin.ts";
import { loadConfig } from "../../packages/control-plane/src/installation/config/config.ts";
import { startServer } from "../../packages/control-plane/src/server.ts";
import { runDaemon } from "../../packages/daemon/src/daemon.ts";
import { type Api, apiAt } from "../../scripts/quickstart-steps/fairlead.ts";
import { docker, ensureDemoAgentImage, ensureDemoImage } from "./docker.ts";
import { removeNodeNetworks } from "./node-networks.ts";
import { type Placeholders, withoutIdentities } from "./recording-cleaner.ts";
import { RecordingProxy } from "./recording-proxy.ts";
import { waitFor } from "./wait-for.ts";

/**
 * `node --conditions=fairlead-source test/support/record-daemon.ts FILE`: records what today's daemon and today's server say to each other, a
 * first start with an agent and a second one without, for later servers to be held against. Made anew only when the protocol's version changes; format the file afterwards.
 */

const SOON_MS = 60_000;
const log = pino({ level: "silent" });

interface Stage {
  readonly folder: string;
  /** In memory, where secrets belong. */
  readonly runtimeDir: string;
  readonly proxy: RecordingProxy;
  readonly api: Api;
  readonly nodeId: string;
  readonly agentId: string;
  readonly tokenFile: string;
}

async function record(file: string): Promise<void> {
  await Promise.all([ensureDemoImage(), ensureDemoAgentImage()]);
  const folder = mkdtempSync(join(tmpdir(), "fairlead-record-"));
  const proxy = new RecordingProxy();
  const config = loadConfig({
    env: {
      FAIRLEAD_DATA_DIR: join(folder, "data"),
      FAIRLEAD_SERVER_PLATFORM_PORT: "0",
      FAIRLEAD_SERVER_INFERENCE_PORT: "0",
      FAIRLEAD_SERVER_PUBLIC_URL: await proxy.start(),
      FAIRLEAD_LOG_LEVEL: "silent",
    },
  });
  const server = await startServer(config);
  proxy.target = server.platformUrl;
  const admin = await openLocalAdmin(config);
  const email = "recorder@example.org";
  await admin.createUser({ email, name: "Recorder", platformAdmin: false });
  const api = apiAt(server.platformUrl, (await admin.createToken({ email })).token);
  const { nodeId, agentId, token } = await createNode(api);
  const runtimeDir = mkdtempSync("/dev/shm/fairlead-record-");
  const stage = { folder, runtimeDir, proxy, api, nodeId, agentId, tokenFile: join(folder, "token") };
  writeFileSync(stage.tokenFile, token);
  try {
    await playBothStarts(stage);
    writeFileSync(file, `${JSON.stringify(withoutIdentities(proxy.steps, placeholders(stage, token)), null, 1)}\n`);
  } finally {
    await server.close();
    proxy.stop();
    for (const id of (await docker("ps", "-aq", "--filter", `label=dev.fairlead.node=${nodeId}`))
      .split("\n")
      .filter(Boolean))
      await docker("rm", "-fv", id);
    await removeNodeNetworks(nodeId);
    for (const made of [folder, runtimeDir]) rmSync(made, { recursive: true, force: true });
  }
}

async function createNode(api: Api): Promise<{ nodeId: string; agentId: string; token: string }> {
  const withId = z.object({ id: z.string() });
  const { project } = await api.create("/v1/projects", { name: "Record" }, z.object({ project: withId }));
  const request = { projectId: project.id, planId: "byo", name: "Box", engineConfig: { preset: "fairlead-demo" } };
  const { node } = await api.create("/v1/nodes", request, z.object({ node: withId }));
  const path = `/v1/nodes/${node.id}/bootstrap-tokens`;
  const guest = { guest: "fairlead-demo-agent", runtimeProvider: `node:${node.id}` };
  const asked = { projectId: project.id, name: "Recorded", ...guest };
  const { agent } = await api.create("/v1/agents", asked, z.object({ agent: withId }));
  return { nodeId: node.id, agentId: agent.id, ...(await api.create(path, {}, z.object({ token: z.string() }))) };
}

async function playBothStarts({ folder, runtimeDir, proxy, api, nodeId, agentId, tokenFile }: Stage): Promise<void> {
  const scene = async (name: "start" | "stop"): Promise<void> => {
    proxy.steps.push({ scene: `agent:${name}` });
    await api.create(`/v1/agents/${agentId}:${name}`, {}, agentSchema);
  };
  const agentIs = async (state: AgentLifecycleState): Promise<boolean> =>
    (await api.find(`/v1/agents/${agentId}`, agentSchema))?.lifecycleState === state;
  const run = async (bootstrapTokenFile: string | null, until: () => Promise<void>): Promise<void> => {
    const closing = new AbortController();
    const settings = {
      dockerSocket: "/var/run/docker.sock",
      workloadSubnets: "198.19.0.0/16",
      logLevel: "error",
      insecure: false,
      caFile: null,
      proxies: NO_PROXIES,
      trialSeconds: 300,
      serviceManager: { listens: false, watchdogMs: null },
    } as const;
    const running = runDaemon(
      { ...settings, stateDir: join(folder, "state"), runtimeDir, bootstrapTokenFile },
      { log, signal: closing.signal },
    );
    await until();
    closing.abort();
    await running;
  };
  const isActive = async () => (await api.find(`/v1/nodes/${nodeId}`, nodeSchema))?.status === "active";
  await run(tokenFile, async () => {
    await waitFor("the node to be active", SOON_MS, isActive);
    await scene("start");
    await waitFor("the agent to run", SOON_MS, () => agentIs("running"));
  });
  const before = proxy.steps.length;
  const isHeard = async () => JSON.stringify(proxy.steps.slice(before)).includes('"heartbeat"');
  await run(null, async () => {
    await waitFor("a heartbeat", SOON_MS, isHeard);
    await scene("stop");
    await waitFor("the agent to be gone", SOON_MS, () => agentIs("stopped"));
  });
}

function placeholders({ nodeId, agentId }: Stage, token: string): Placeholders {
  return { nodeId, agentId, bootstrapToken: token };
}

const [, , output] = process.argv;
if (output === undefined) throw new Error("name the file to write");
await record(output);
process.exit(0);
