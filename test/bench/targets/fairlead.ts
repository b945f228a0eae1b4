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
const bootstrapTokenSchema = z.object({ token: z.string() });

const PROVIDER = "mock";

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
  buildOnce();
  const server = await startServer(bench);
  const { key, identifier, bootstrapToken } = await enrolNode(server);
  const args = ["--conditions=fairlead-source", NODE_PROGRAM, String(bench.mockPort), server.folder];
  writeFileSync(join(server.folder, "bootstrap-token"), bootstrapToken, { mode: 0o600 });
  const daemon = bench.processes.launch(program(bench, { name: "fairlead-node", args, core: 0 }));
  const running = { port: server.inferencePort, key, model: `${identifier}/mock-model` };
  await untilAnswers(running, server.process, daemon);
  return {
    ...running,
    parts: [
      { name: "control plane", pids: [server.process.pid] },
      { name: "daemon", pids: [daemon.pid] },
    ],
    stop: async () => {
      await daemon.stop();
      await server.process.stop();
    },
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

async function startServer(bench: Bench): Promise<Server> {
  const folder = mkdtempSync(join(bench.folder, "fairlead-"));
  const anyPort = { host: "127.0.0.1", port: 0 };
  const baseUrl = `http://127.0.0.1:${bench.mockPort}/v1`;
  const config = {
    dataDir: folder,
    server: { platform: anyPort, inference: anyPort, shutdownSeconds: 0 },
    providers: { platform: [{ name: PROVIDER, baseUrl, protocols: ["chat"], models: [{ name: "mock-model" }] }] },
  };
  const { configFile } = installationIn(folder);
  // JSON is YAML.
  writeFileSync(configFile, JSON.stringify(config));
  const args = [join(ROOT, "packages/cli/bin/fairlead.js"), "server", "--config", configFile];
  const server = bench.processes.launch(program(bench, { name: "fairlead-server", args, core: 1 }));
  const platformUrl = await server.printed(/"platformUrl":"([^"]+)"/);
  const inferenceUrl = new URL(await server.printed(/"inferenceUrl":"([^"]+)"/));
  return { process: server, folder, platformUrl, inferencePort: Number(inferenceUrl.port) };
}

async function enrolNode(
  server: Server,
): Promise<{ readonly key: string; readonly identifier: string; readonly bootstrapToken: string }> {
  const { api, projectId } = await createProject(server);
  const key = await createKey(api, projectId);
  const nodeRequest = { projectId, planId: "byo", name: "bench", engineConfig: { preset: "fairlead-demo" } };
  const { node } = await api.create("/v1/nodes", nodeRequest, createdNodeSchema);
  const { token } = await api.create(`/v1/nodes/${node.id}/bootstrap-tokens`, {}, bootstrapTokenSchema);
  return { key, identifier: node.identifier, bootstrapToken: token };
}

type Api = ReturnType<typeof apiAt>;

async function createProject(server: Server): Promise<{ readonly api: Api; readonly projectId: string }> {
  const installation = installationIn(server.folder);
  await ensureAdministrator(installation, ADMINISTRATOR);
  const api = apiAt(server.platformUrl, await createToken(installation, ADMINISTRATOR));
  const { project } = await api.create("/v1/projects", { name: "Bench" }, createdProjectSchema);
  return { api, projectId: project.id };
}

async function createKey(api: Api, projectId: string): Promise<string> {
  const request = { projectId, name: "bench" };
  const { key } = await api.create(`/v1/projects/${projectId}/keys`, request, createdKeySchema);
  return key.keyValue;
}
