import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Role } from "@fairlead/protocol/resources";
import { type ReadyRequest, WORKLOAD_TYPE_ENGINE } from "@fairlead/protocol/workload";
import { type WorkloadConnect, workloadConnectSchema } from "@fairlead/protocol/workload-connect";
import { pino } from "pino";
import { z } from "zod";
import { type LocalAdmin, openLocalAdmin } from "../../packages/control-plane/src/installation/admin/local-admin.ts";
import { type Config, loadConfig } from "../../packages/control-plane/src/installation/config/config.ts";
import {
  type Installation,
  openInstallation,
} from "../../packages/control-plane/src/installation/installation-room.ts";
import { type RunningServer, startServer } from "../../packages/control-plane/src/server.ts";
import { ConnectCheck } from "../../packages/daemon/src/gateway/connect-check.ts";
import { createGateway } from "../../packages/daemon/src/gateway/gateway.ts";
import { PlatformKeys, platformKeysSchema } from "../../packages/daemon/src/gateway/platform-keys.ts";
import { enroll } from "../../packages/daemon/src/link/enroll.ts";
import { nodeHttpClient } from "../../packages/daemon/src/link/http-client.ts";
import { generateNodeKeys } from "../../packages/daemon/src/link/node-keys.ts";
import { ServerClock } from "../../packages/daemon/src/link/server-clock.ts";
import { systemTimers } from "../../packages/daemon/src/process/timers.ts";
import { readyCall } from "../../packages/daemon/src/report/ready-call.ts";
import { DurableRecord } from "../../packages/daemon/src/state/durable-record.ts";
import { diskFiles } from "../../packages/daemon/src/state/files.ts";
import { IdentityStore } from "../../packages/daemon/src/state/identity-store.ts";
import { startTunnel, type Tunnel } from "../../packages/daemon/src/tunnel/tunnel-client.ts";
import { systemClock } from "../../packages/protocol/src/values/clock.ts";
import { systemIds } from "../../packages/protocol/src/values/ids.ts";
import { ScriptedEngine } from "./scripted-engine.ts";
import { waitFor } from "./wait-for.ts";

const WAIT_MS = 10_000;
const log = pino({ level: "silent" });
const serverClock = new ServerClock(systemClock);
const timing = { pingIntervalMs: 1000, pingTimeoutMs: 5000, backoff: { baseMs: 20, maxMs: 100 } };

const createdProject = z.object({ project: z.object({ id: z.string() }) });
const createdNode = z.object({ node: z.object({ id: z.string() }) });
const issuedToken = z.object({ token: z.string() });

export interface Person {
  readonly token: string;
  readonly userId: string;
}

/** A node that is enrolled and active: its identity, tunnel and gateway are the daemon's own code; its engine does what a test says. */
export interface StagedNode {
  readonly id: string;
  readonly projectId: string;
  readonly engine: ScriptedEngine;
  readonly identityToken: string;
  readonly tunnel: Tunnel;
  /** Where it keeps the platform's public keys. */
  readonly stateDir: string;
}

export interface StageCall {
  readonly token: string;
  readonly method?: string;
  readonly path: string;
  readonly body?: object;
}

const post = ({ token }: Person, path: string): StageCall => ({ token, method: "POST", path });

/** A whole control plane in this process, and nodes with scripted engines. */
export class RelayStage {
  readonly dir = mkdtempSync(join(tmpdir(), "fairlead-relay-"));
  readonly #config: Config;
  #server: RunningServer | null = null;
  #installation: Installation | null = null;
  readonly #nodes: StagedNode[] = [];
  #people = 0;

  private constructor() {
    const env = {
      FAIRLEAD_DATA_DIR: join(this.dir, "data"),
      FAIRLEAD_SERVER_PLATFORM_PORT: "0",
      FAIRLEAD_SERVER_INFERENCE_PORT: "0",
      FAIRLEAD_SERVER_SHUTDOWN_SECONDS: "0",
      FAIRLEAD_LOG_LEVEL: "silent",
      FAIRLEAD_RATE_LIMITS_DAEMONS_PER_ADDRESS: "1000000",
      FAIRLEAD_RATE_LIMITS_UPGRADES_PER_ADDRESS: "1000000",
    };
    this.#config = loadConfig({ env });
  }

  static async start(): Promise<RelayStage> {
    const stage = new RelayStage();
    stage.#server = await startServer(stage.#config);
    const ports = { clock: systemClock, ids: systemIds(() => systemClock.now()) };
    stage.#installation = await openInstallation(stage.#config, { ...ports, publicUrl: stage.url });
    return stage;
  }

  get url(): string {
    if (this.#server === null) throw new Error("the stage has not started");
    return this.#server.platformUrl;
  }

  async asOperator<T>(work: (admin: LocalAdmin) => Promise<T>): Promise<T> {
    const admin = await openLocalAdmin(this.#config);
    try {
      return await work(admin);
    } finally {
      await admin.close();
    }
  }

  async addPerson(): Promise<Person> {
    this.#people += 1;
    const email = `person${this.#people}@example.org`;
    return this.asOperator(async (admin) => {
      const { user } = await admin.createUser({ email, name: email, platformAdmin: false });
      const { token } = await admin.createToken({ email });
      return { token, userId: user.id };
    });
  }

  async addProject(owner: Person): Promise<string> {
    return (await this.call({ ...post(owner, "/v1/projects"), body: { name: "Relay" } }, createdProject)).project.id;
  }

  /** Makes somebody a member, as an invitation would. */
  async join(projectId: string, { userId }: Person, role: Role): Promise<void> {
    const row = { project_id: projectId, user_id: userId, role, created_at: systemClock.now() };
    await this.#installation?.db.insertInto("member").values(row).execute();
  }

  /** Signs somebody out, as they do it themselves. */
  async endSession({ token }: Person): Promise<void> {
    const [, claims = ""] = token.split(".");
    const { sid } = z.object({ sid: z.string() }).parse(JSON.parse(Buffer.from(claims, "base64url").toString()));
    await this.call({ token, method: "DELETE", path: `/v1/me/sessions/${sid}` }, z.unknown());
  }

  async addNode(owner: Person, projectId: string): Promise<StagedNode> {
    const engineConfig = { preset: "fairlead-demo" };
    const body = { projectId, planId: "byo", name: "Box", engineConfig };
    const { node } = await this.call({ ...post(owner, "/v1/nodes"), body }, createdNode);
    const staged = await this.#bring(owner, { id: node.id, projectId });
    this.#nodes.push(staged);
    return staged;
  }

  connect(token: string, nodeId: string): Promise<WorkloadConnect> {
    return this.call({ token, path: `/v1/nodes/${nodeId}/workload-connect` }, workloadConnectSchema);
  }

  /** @throws with the answer, where it is no good one. */
  async call<T>({ token, method = "GET", path, body }: StageCall, answer: z.ZodType<T>): Promise<T> {
    const response = await fetch(`${this.url}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, ...(body ? { "content-type": "application/json" } : {}) },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return answer.parse(await response.json());
  }

  async stop(): Promise<void> {
    for (const node of this.#nodes) {
      await node.tunnel.close();
      await node.engine.stop();
    }
    await this.#installation?.close();
    await this.#server?.close();
    rmSync(this.dir, { recursive: true });
  }

  /** A daemon with keys of its own takes the node over, as on a machine that was installed anew. */
  async enroll(owner: Person, id: string): ReturnType<typeof enroll> {
    const stateDir = mkdtempSync(join(this.dir, "state-"));
    const { token } = await this.call(post(owner, `/v1/nodes/${id}/bootstrap-tokens`), issuedToken);
    const store = new IdentityStore(diskFiles, stateDir);
    const parts = { http: nodeHttpClient, store, serverClock, timers: systemTimers, random: Math.random, log };
    const identity = { platformUrl: this.url, nodeId: id, keys: await generateNodeKeys(), enrolled: null };
    return enroll(parts, { identity, token, operatingSystem: "Debian 12", signal: new AbortController().signal });
  }

  async #bring(owner: Person, { id, projectId }: { id: string; projectId: string }): Promise<StagedNode> {
    const platformUrl = this.url;
    const enrolled = await this.enroll(owner, id);
    const stateDir = mkdtempSync(join(this.dir, "state-"));
    const { identityToken } = enrolled.answer;
    const engine = new ScriptedEngine();
    const port = await engine.start();
    const record = new DurableRecord(diskFiles, join(stateDir, "platform-keys.json"), platformKeysSchema);
    const keys = new PlatformKeys({
      platformUrl,
      http: nodeHttpClient,
      record,
      clock: systemClock,
      timers: systemTimers,
      log,
    });
    const { installationId } = enrolled.identity.enrolled;
    const connect = new ConnectCheck({ keys, installationId, nodeId: id, now: () => serverClock.now() });
    const target = { host: "127.0.0.1", port, ready: true };
    const find = (name: string): typeof target | null => (name === "engine" ? target : null);
    const handler = createGateway({ targets: { find }, connect, log });
    const tokens = { token: () => Promise.resolve(identityToken), invalidate: () => undefined };
    const tunnel = startTunnel({
      platformUrl,
      nodeId: id,
      token: tokens.token,
      handler,
      clock: systemClock,
      random: Math.random,
      log,
      timing,
    });
    await readyCall({ platformUrl, http: nodeHttpClient, tokens })(readyReport(id));
    await waitFor("the tunnel", WAIT_MS, async () => tunnel.state === "open");
    return { id, projectId, engine, identityToken, tunnel, stateDir };
  }
}

function readyReport(id: string): ReadyRequest {
  const digest = `sha256:${"0".repeat(64)}`;
  const report = {
    workloadId: `${id}-engine`,
    workloadType: WORKLOAD_TYPE_ENGINE,
    ready: true,
    state: "running",
    version: "1",
    image: "engine",
    imageDigest: digest,
    generation: 1,
    models: ["tiny"],
    startedAt: null,
    restartCount: 0,
    lastExit: null,
    message: "",
  } as const;
  return {
    id,
    workloadReports: [{ ...report, models: [...report.models] }],
    operatingSystem: "Debian 12",
    workerImageDigest: digest,
  };
}
