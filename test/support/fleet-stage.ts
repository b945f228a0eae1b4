import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { keyThumbprint } from "../../packages/control-plane/src/access/auth/tokens/node-assertion.ts";
import { planWorkloads } from "../../packages/control-plane/src/fleet/nodes/desired/plan-desired.ts";
import { NEW_NODE, type NodeRecord } from "../../packages/control-plane/src/fleet/nodes/node.ts";
import { nodeStores } from "../../packages/control-plane/src/fleet/nodes/records/node-stores.ts";
import { loadConfig } from "../../packages/control-plane/src/installation/config/config.ts";
import { holdDataDir } from "../../packages/control-plane/src/installation/db/data-dir.ts";
import {
  type Installation,
  openInstallation,
} from "../../packages/control-plane/src/installation/installation-room.ts";
import { MembershipService } from "../../packages/control-plane/src/people/members/membership-service.ts";
import { ProjectService } from "../../packages/control-plane/src/people/projects/project-service.ts";
import { projectStores } from "../../packages/control-plane/src/people/projects/project-stores.ts";
import { generateNodeKeys, publicKeys } from "../../packages/daemon/src/link/node-keys.ts";
import { systemClock } from "../../packages/protocol/src/values/clock.ts";
import { systemIds } from "../../packages/protocol/src/values/ids.ts";
import { twoFreePorts } from "./ports.ts";
import { Program } from "./program.ts";
import type { SimulatedNode } from "./simulated-daemon.ts";
import { waitFor } from "./wait-for.ts";

const SERVER = new URL("../../packages/cli/bin/fairlead.js", import.meta.url).pathname;
const READY_MS = 30_000;
const EMAIL = "admin@fleet.local";
const ENGINE = { preset: "fairlead-demo" } as const;

export interface FleetStageOptions {
  readonly nodes: number;
  /** On top of what a server of its own ports needs. */
  readonly settings?: Readonly<Record<string, unknown>> & { readonly server?: Readonly<Record<string, unknown>> };
  /** In its public address, in place of 127.0.0.1. */
  readonly publicName?: string;
  /** For the server's Node. */
  readonly execArgv?: readonly string[];
}

/** A control plane in a process of its own, on a store that knows a whole fleet of enrolled nodes already. */
export class FleetStage {
  readonly dir = mkdtempSync(join(tmpdir(), "fairlead-fleet-"));
  readonly #configFile = join(this.dir, "config.yaml");
  readonly #execArgv: readonly string[];
  #server: Program | null = null;
  /** The owner's. */
  token = "";
  nodes: readonly SimulatedNode[] = [];
  platformUrl = "";
  modelsUrl = "";

  private constructor(options: FleetStageOptions) {
    this.#execArgv = options.execArgv ?? [];
  }

  static async start(options: FleetStageOptions): Promise<FleetStage> {
    const stage = new FleetStage(options);
    const [platform, inference] = await twoFreePorts();
    const { server: more = {}, ...settings } = options.settings ?? {};
    const scheme = "tls" in more ? "https" : "http";
    stage.platformUrl = `${scheme}://127.0.0.1:${platform}`;
    stage.modelsUrl = `${scheme}://127.0.0.1:${inference}`;
    const publicUrl = `${scheme}://${options.publicName ?? "127.0.0.1"}:${platform}`;
    const server = { platform: { port: platform }, inference: { port: inference }, publicUrl };
    const config = { dataDir: join(stage.dir, "data"), server: { ...server, ...more }, ...settings };
    // JSON is YAML.
    writeFileSync(stage.#configFile, JSON.stringify(config));
    await stage.#fill(options.nodes);
    await stage.startServer();
    return stage;
  }

  get server(): Program {
    if (this.#server === null) throw new Error("the server has not started");
    return this.#server;
  }

  /** @returns when it answers. */
  async startServer(): Promise<void> {
    const command = [process.execPath, ...this.#execArgv, SERVER, "server", "--config", this.#configFile];
    const server = new Program(command, join(this.dir, "server.log"));
    this.#server = server;
    await waitFor("the server", READY_MS, async () => !server.running || (await this.isReady()));
    if (!server.running) throw new Error(`the server ended at once:\n${server.lastLines()}`);
  }

  async isReady(): Promise<boolean> {
    return (await fetch(`${this.platformUrl}/readyz`)).ok;
  }

  /** As the owner of the fleet's project. */
  async call(method: string, path: string, body?: object): Promise<unknown> {
    const headers = { authorization: `Bearer ${this.token}`, "content-type": "application/json" };
    const init = body === undefined ? { method, headers } : { method, headers, body: JSON.stringify(body) };
    const response = await fetch(this.platformUrl + path, init);
    if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${await response.text()}`);
    return response.json();
  }

  /** @param series as `/metrics` writes it, with its labels. */
  async figure(series: string): Promise<number> {
    const text = await (await fetch(`${this.platformUrl}/metrics`)).text();
    const line = text.split("\n").find((candidate) => candidate.startsWith(`${series} `));
    if (line === undefined) throw new Error(`there is no series ${series}`);
    return Number(line.slice(series.length + 1));
  }

  nodesIn(status: string): Promise<number> {
    return this.figure(`fairlead_nodes{status="${status}"}`);
  }

  async remove(): Promise<void> {
    await this.#server?.kill();
    rmSync(this.dir, { recursive: true, force: true });
  }

  async #fill(count: number): Promise<void> {
    const config = loadConfig({ file: this.#configFile, env: {} });
    const lock = await holdDataDir(config.dataDir);
    try {
      const ports = { clock: systemClock, ids: systemIds(() => systemClock.now()) };
      const installation = await openInstallation(config, { ...ports, publicUrl: this.platformUrl });
      try {
        await installation.admin.createUser({ email: EMAIL, name: "Fleet", platformAdmin: true });
        this.token = (await installation.admin.createToken({ email: EMAIL, ttlSeconds: 3600 })).token;
        this.nodes = await addNodes(installation, { ...ports, count, platformUrl: this.platformUrl });
      } finally {
        await installation.close();
      }
    } finally {
      lock.release();
    }
  }
}

interface FleetOptions {
  readonly clock: typeof systemClock;
  readonly ids: ReturnType<typeof systemIds>;
  readonly count: number;
  readonly platformUrl: string;
}

async function addNodes(
  installation: Installation,
  { count, platformUrl, ...ports }: FleetOptions,
): Promise<SimulatedNode[]> {
  const { db, audit, users, tokens, record } = installation;
  const user = await users.findByEmail(EMAIL);
  if (!user) throw new Error("the fleet's owner is not there");
  const caller = { kind: "user", userId: user.id as `usr_${string}`, platformAdmin: true } as const;
  const memberships = new MembershipService({ db });
  const projects = new ProjectService({ ...ports, audit, stores: projectStores(db), memberships });
  const { id: projectId } = await projects.create(caller, { name: "Fleet" });
  const nodes: SimulatedNode[] = [];
  await nodeStores(db).transaction(async (stores) => {
    for (let n = 0; n < count; n++) {
      const nodeId = ports.ids.next("node");
      const keys = await generateNodeKeys();
      const { signingKey, sealingKey } = publicKeys(keys);
      const facts = { id: nodeId, projectId, userId: user.id, name: `Box ${n}`, identifier: `box-${n}` };
      await stores.nodes.insert({ ...enrolled(ports.clock.now()), ...facts, signingKey, sealingKey });
      await stores.reports.setDesired(nodeId, planWorkloads(nodeId, ENGINE));
      const keyIs = { keyThumbprint: keyThumbprint(signingKey), ttlSeconds: 24 * 3600 };
      const identityToken = await tokens.issueNodeIdentity({ nodeId, projectId, ...keyIs });
      const enrolment = { projectId, installationId: record.id, bootstrapTokenSha256: "" };
      nodes.push({ identity: { platformUrl, nodeId, keys, enrolled: enrolment }, identityToken });
    }
  });
  return nodes;
}

type Enrolled = Omit<NodeRecord, "id" | "projectId" | "userId" | "name" | "identifier" | "signingKey" | "sealingKey">;

function enrolled(now: number): Enrolled {
  return {
    ...NEW_NODE,
    planId: "byo",
    status: "starting",
    statusMessage: "",
    statusSince: now,
    directSecrets: false,
    engineConfig: ENGINE,
    enrolledAt: now,
    createdAt: now,
  };
}
