import { spawnSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import {
  type Administrator,
  apiAt,
  createToken,
  ensureAdministrator,
} from "../../../scripts/quickstart-steps/fairlead.ts";
import { installationIn } from "../../../scripts/quickstart-steps/installation.ts";
import type { Bench } from "../bench.ts";
import { processTree } from "../machine.ts";
import type { Launch, Started } from "../processes.ts";
import type { RunningTarget } from "../targets.ts";
import { untilAnswers } from "./start.ts";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const NODE_PROGRAM = fileURLToPath(new URL("fairlead-node-program.ts", import.meta.url));
const ADMINISTRATOR: Administrator = { email: "admin@bench.local", name: "Bench" };

/** Only what is used: the packages' own schemas are there after the build that this file starts. */
const createdProjectSchema = z.object({ project: z.object({ id: z.string() }) });
const createdKeySchema = z.object({ key: z.object({ keyValue: z.string() }) });
const createdNodeSchema = z.object({ node: z.object({ id: z.string(), identifier: z.string() }) });
const workloadConnectSchema = z.object({ gatewayUrl: z.string(), authToken: z.string() });
const bootstrapTokenSchema = z.object({ token: z.string() });

const PROVIDER = "mock";
/** How much of a chat's history goes into a call. */
export const CONTEXT_TOKENS = 8000;
const MODEL = { name: "mock-model", contextTokens: CONTEXT_TOKENS, maxOutputTokens: 1000 };

/** The server as it is shipped, on a store of its own; the mock is a provider of the platform. */
export async function startFairleadHttp(bench: Bench): Promise<RunningTarget> {
  buildOnce();
  const server = await startServer(bench);
  const { api, projectId } = await createProject(server);
  const key = await createKey(api, projectId);
  const running = { port: server.inferencePort, key, model: `${PROVIDER}/mock-model` };
  await untilAnswers(running, server.process);
  return {
    ...running,
    parts: [{ name: "control plane", pids: [server.process.pid] }],
    stop: () => server.process.stop(),
  };
}

/**
 * The same, and a node whose link, tunnel and gateway are the daemon's; only its engine is the mock. The daemon shares core 0
 * with the mock: in real life it is another machine.
 */
export async function startFairlead(bench: Bench): Promise<RunningTarget> {
  const { server, daemon, node, stop } = await startNode(bench);
  const running = { port: server.inferencePort, key: node.key, model: `${node.identifier}/mock-model` };
  await untilAnswers(running, server.process, daemon);
  return { ...running, parts: partsOf(server, daemon), stop };
}

/** The same node, whose engine is reached through the relay. */
export async function startFairleadRelay(bench: Bench): Promise<RunningTarget> {
  const { server, daemon, node, stop } = await startNode(bench);
  await untilAnswers(
    { port: server.inferencePort, key: node.key, model: `${node.identifier}/mock-model` },
    server.process,
    daemon,
  );
  const way = await node.api.find(`/v1/nodes/${node.id}/workload-connect`, workloadConnectSchema);
  if (way === null) throw new Error("the bench's node is gone");
  const { port, pathname } = new URL(way.gatewayUrl);
  const running = { port: Number(port), key: way.authToken, model: "mock-model", prefix: pathname };
  return { ...running, parts: partsOf(server, daemon), stop };
}

function partsOf(server: Server, daemon: Started): RunningTarget["parts"] {
  return [
    { name: "control plane", pids: [server.process.pid] },
    { name: "daemon", pids: [daemon.pid] },
  ];
}

interface StartedNode {
  readonly server: Server;
  readonly daemon: Started;
  readonly node: Awaited<ReturnType<typeof enrolNode>>;
  readonly stop: () => Promise<void>;
}

async function startNode(bench: Bench): Promise<StartedNode> {
  buildOnce();
  const server = await startServer(bench);
  const node = await enrolNode(server);
  const { bootstrapToken } = node;
  const args = ["--conditions=fairlead-source", NODE_PROGRAM, String(bench.mockPort), server.folder];
  writeFileSync(join(server.folder, "bootstrap-token"), bootstrapToken, { mode: 0o600 });
  const daemon = bench.processes.launch(program(bench, { name: "fairlead-node", args, core: 0 }));
  return {
    server,
    daemon,
    node,
    stop: async () => {
      await daemon.stop();
      await server.process.stop();
    },
  };
}

/** The same server as `startFairleadHttp`, and a person who may chat. */
export interface ChatServer {
  readonly pid: number;
  readonly platformUrl: string;
  readonly modelsUrl: string;
  readonly projectId: string;
  readonly token: string;
  readonly key: string;
  readonly model: string;
}

/** @param heapMb beyond which its garbage is collected at once; where memory is plenty Node lets it lie, and it looks like a leak. */
export async function startFairleadChat(bench: Bench, heapMb: number): Promise<ChatServer> {
  buildOnce();
  const server = await startServer(bench, [`--max-old-space-size=${heapMb}`]);
  const { api, token, projectId } = await createProject(server);
  const { process: started, platformUrl, inferencePort } = server;
  return {
    pid: processTree(started.pid).at(-1) ?? started.pid,
    platformUrl,
    modelsUrl: `http://127.0.0.1:${inferencePort}`,
    projectId,
    token,
    key: await createKey(api, projectId),
    model: `${PROVIDER}/mock-model`,
  };
}

let built = false;

/** Programs run as they are shipped: a source that Node has to strip of types first would take memory of its own. */
function buildOnce(): void {
  if (built) return;
  const tsc = join(ROOT, "node_modules/.bin/tsc");
  const build = spawnSync(tsc, ["-b", "packages/cli", "packages/control-plane"], { cwd: ROOT, encoding: "utf8" });
  if (build.status !== 0) throw new Error(`the build fails:\n${build.stdout}`);
  built = true;
}

function program(bench: Bench, launch: Omit<Launch, "command">): Launch {
  const profile =
    bench.profileDir === undefined
      ? []
      : ["--cpu-prof", `--cpu-prof-dir=${bench.profileDir}`, `--cpu-prof-name=${launch.name}-${Date.now()}.cpuprofile`];
  return { ...launch, command: process.execPath, args: [...profile, ...launch.args] };
}

interface Server {
  readonly process: Started;
  readonly folder: string;
  readonly platformUrl: string;
  readonly inferencePort: number;
}

async function startServer(bench: Bench, nodeArgs: readonly string[] = []): Promise<Server> {
  const folder = mkdtempSync(join(bench.folder, "fairlead-"));
  const anyPort = { host: "127.0.0.1", port: 0 };
  const baseUrl = `http://127.0.0.1:${bench.mockPort}/v1`;
  const config = {
    dataDir: folder,
    server: { platform: anyPort, inference: anyPort, shutdownSeconds: 0 },
    providers: { platform: [{ name: PROVIDER, baseUrl, protocols: ["chat"], models: [MODEL] }] },
  };
  const { configFile } = installationIn(folder);
  // JSON is YAML.
  writeFileSync(configFile, JSON.stringify(config));
  const args = [...nodeArgs, join(ROOT, "packages/cli/bin/fairlead.js"), "server", "--config", configFile];
  const server = bench.processes.launch(program(bench, { name: "fairlead-server", args, core: 1 }));
  const platformUrl = await server.printed(/"platformUrl":"([^"]+)"/);
  const inferenceUrl = new URL(await server.printed(/"inferenceUrl":"([^"]+)"/));
  return { process: server, folder, platformUrl, inferencePort: Number(inferenceUrl.port) };
}

async function enrolNode(server: Server): Promise<{
  readonly api: Api;
  readonly key: string;
  readonly id: string;
  readonly identifier: string;
  readonly bootstrapToken: string;
}> {
  const { api, projectId } = await createProject(server);
  const key = await createKey(api, projectId);
  const nodeRequest = { projectId, planId: "byo", name: "bench", engineConfig: { preset: "fairlead-demo" } };
  const { node } = await api.create("/v1/nodes", nodeRequest, createdNodeSchema);
  const { token } = await api.create(`/v1/nodes/${node.id}/bootstrap-tokens`, {}, bootstrapTokenSchema);
  return { api, key, ...node, bootstrapToken: token };
}

type Api = ReturnType<typeof apiAt>;

async function createProject(
  server: Server,
): Promise<{ readonly api: Api; readonly token: string; readonly projectId: string }> {
  const installation = installationIn(server.folder);
  await ensureAdministrator(installation, ADMINISTRATOR);
  const token = await createToken(installation, ADMINISTRATOR, "12h");
  const api = apiAt(server.platformUrl, token);
  const { project } = await api.create("/v1/projects", { name: "Bench" }, createdProjectSchema);
  return { api, token, projectId: project.id };
}

async function createKey(api: Api, projectId: string): Promise<string> {
  const request = { projectId, name: "bench" };
  const { key } = await api.create(`/v1/projects/${projectId}/keys`, request, createdKeySchema);
  return key.keyValue;
}
