import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePorts } from "@fairlead/protocol/testing/free-ports";
import { pino } from "pino";
import { z } from "zod";
import { enroll } from "../../packages/daemon/src/link/enroll.ts";
import { nodeHttpClient } from "../../packages/daemon/src/link/http-client.ts";
import { generateNodeKeys } from "../../packages/daemon/src/link/node-keys.ts";
import { ServerClock } from "../../packages/daemon/src/link/server-clock.ts";
import { systemTimers } from "../../packages/daemon/src/process/timers.ts";
import { diskFiles } from "../../packages/daemon/src/state/files.ts";
import { IdentityStore } from "../../packages/daemon/src/state/identity-store.ts";
import { systemClock } from "../../packages/protocol/src/values/clock.ts";
import { StartedServer } from "../support/started-server.ts";
import { waitFor } from "../support/wait-for.ts";
import type { AttackerReport, AttackerRequest } from "./attacker-program.ts";
import type { DaemonReport } from "./daemon-program.ts";
import {
  type Facts,
  type FleetOwner,
  HOSTILE_PROVIDERS,
  ISSUER_ID,
  type Owner,
  type Ports,
  PRICES,
  type StageNode,
  type Tenant,
} from "./facts.ts";
import { Helper } from "./helper.ts";
import type { HonestReport } from "./honest-program.ts";

export const SHUTDOWN_SECONDS = 2;
const READY_MS = 60_000;
const LINK_NODES = 4;
const TUNNEL_NODES = 8;
const RECONNECTING_NODES = 3;

const createdProject = z.object({ project: z.object({ id: z.string() }) });
const createdKey = z.object({ key: z.object({ keyValue: z.string() }) });
const createdNode = z.object({ node: z.object({ id: z.string(), identifier: z.string() }) });
const issuedToken = z.object({ token: z.string() });

/**
 * The server as it is shipped, an honest client, the attacker, and the parts of a daemon whose engine is hostile: each in a process
 * of its own, so that none of them uses another's processor time unseen.
 */
export class AttackStage {
  readonly server: StartedServer;
  readonly facts: Facts;
  /** Of the server's Node. */
  readonly inspectorPort: number;
  readonly honest: Helper<Facts, HonestReport>;
  readonly attacker: Helper<Facts | AttackerRequest, AttackerReport>;
  readonly daemon: Helper<Facts, DaemonReport>;

  private constructor(
    server: StartedServer,
    { facts, inspectorPort }: { readonly facts: Facts; readonly inspectorPort: number },
  ) {
    this.server = server;
    this.facts = facts;
    this.inspectorPort = inspectorPort;
    this.honest = new Helper("honest-program.ts");
    this.attacker = new Helper("attacker-program.ts");
    this.daemon = new Helper("daemon-program.ts");
    for (const helper of [this.honest, this.attacker, this.daemon]) helper.send(facts);
  }

  static async start(): Promise<AttackStage> {
    const first = await freePorts(5);
    const ports = { honest: first, hostileUpstream: first + 1, hostileEngine: first + 2, hostileIssuer: first + 3 };
    const inspectorPort = first + 4;
    const server = await StartedServer.start(settings(ports), [`--inspect=127.0.0.1:${inspectorPort}`]);
    const folder = mkdtempSync(join(tmpdir(), "fairlead-attack-"));
    let stage: AttackStage | null = null;
    try {
      const facts = await new Tenants(server, folder).fill(ports);
      stage = new AttackStage(server, { facts, inspectorPort });
      await stage.#untilReady();
      return stage;
    } catch (error) {
      await (stage === null ? server.remove() : stage.stop());
      throw error;
    } finally {
      rmSync(folder, { recursive: true });
    }
  }

  /** @returns whether the server ended when it was told to, within the time that it promises. */
  async stop(): Promise<boolean> {
    const isObeyed = await this.server.stopWithin((SHUTDOWN_SECONDS + 5) * 1000);
    for (const helper of [this.honest, this.attacker, this.daemon]) await helper.end();
    await this.server.remove();
    return isObeyed;
  }

  async #untilReady(): Promise<void> {
    const helpers = [this.honest, this.attacker, this.daemon];
    await waitFor("the stage", READY_MS, async () => {
      const ended = helpers.find(({ running }) => !running);
      if (ended !== undefined) throw new Error(`${ended.name} has ended`);
      return helpers.every(({ last }) => last?.ready === true);
    });
  }
}

function settings(ports: Ports): Readonly<Record<string, unknown>> {
  const models = [{ name: "m" }, { name: "priced", contextTokens: 1_000_000, maxOutputTokens: 1000, prices: PRICES }];
  const good = { name: "good", baseUrl: `http://127.0.0.1:${ports.honest}/v1`, protocols: ["chat"], models };
  const issuerUrl = `http://127.0.0.1:${ports.hostileIssuer}`;
  const issuer = { id: ISSUER_ID, name: "Evil", issuer: issuerUrl, clientId: "fairlead", clientSecret: "a secret" };
  return {
    server: { shutdownSeconds: SHUTDOWN_SECONDS },
    log: { level: "warn" },
    providers: { allowPrivate: true, platform: [good] },
    signIn: { oidc: [issuer] },
    fleet: { minHeartbeatSeconds: 1 },
  };
}

/** Fills the server over its own API. */
class Tenants {
  readonly #server: StartedServer;
  readonly #folder: string;

  constructor(server: StartedServer, folder: string) {
    this.#server = server;
    this.#folder = folder;
  }

  async fill(ports: Ports): Promise<Facts> {
    const { url: platformUrl, modelsUrl } = this.#server;
    const ann = await this.#person("ann");
    const mallory = await this.#person("mallory");
    const honest = await this.#owner(ann, "honest");
    const upstream = await this.#tenant(mallory, "upstream");
    for (const name of HOSTILE_PROVIDERS) await this.#provider(upstream, name, ports.hostileUpstream);
    const callers = [await this.#tenant(mallory, "caller"), await this.#tenant(mallory, "other")];
    const hostile = {
      link: await this.#fleet(mallory, { name: "link", count: LINK_NODES }),
      tunnel: await this.#fleet(mallory, { name: "tunnel", count: TUNNEL_NODES }),
      engine: await this.#owner(mallory, "engine"),
      upstream,
      callers,
      spender: await this.#tenant(mallory, "spender"),
    };
    const reconnecting = await this.#nodes(honest, { name: "reconnecting", count: RECONNECTING_NODES });
    return { platformUrl, modelsUrl, ports, honest: { ...honest, reconnecting }, hostile };
  }

  #person(name: string): Promise<string> {
    const email = `${name}@example.org`;
    return this.#server.asOperator(async (admin) => {
      await admin.createUser({ email, name, platformAdmin: false });
      return (await admin.createToken({ email })).token;
    });
  }

  async #tenant(token: string, name: string): Promise<Tenant> {
    const { project } = await this.#post({ token, path: "/v1/projects", body: { name } }, createdProject);
    const path = `/v1/projects/${project.id}/keys`;
    const { key } = await this.#post({ token, path, body: { name: "key" } }, createdKey);
    return { token, projectId: project.id, key: key.keyValue };
  }

  async #owner(token: string, name: string): Promise<Owner> {
    const tenant = await this.#tenant(token, name);
    return { ...tenant, node: await this.#node(tenant, name) };
  }

  async #fleet(token: string, group: Group): Promise<FleetOwner> {
    const tenant = await this.#tenant(token, group.name);
    return { ...tenant, nodes: await this.#nodes(tenant, group) };
  }

  #nodes(tenant: Tenant, { name, count }: Group): Promise<StageNode[]> {
    return Promise.all(Array.from({ length: count }, (_, n) => this.#node(tenant, `${name} ${n}`)));
  }

  async #provider({ token, projectId }: Tenant, name: string, port: number): Promise<void> {
    const protocols = [name === "evil-chat" ? "chat" : "responses"];
    const timeouts = { firstByteSeconds: 10, idleSeconds: 10 };
    const body = { name, baseUrl: `http://127.0.0.1:${port}/v1`, protocols, timeouts };
    await this.#post({ token, path: `/v1/projects/${projectId}/providers`, body }, z.unknown());
  }

  async #node({ token, projectId }: Tenant, name: string): Promise<StageNode> {
    const body = { projectId, planId: "byo", name, engineConfig: { preset: "fairlead-demo" } };
    const { node } = await this.#post({ token, path: "/v1/nodes", body }, createdNode);
    const bootstrap = { token, path: `/v1/nodes/${node.id}/bootstrap-tokens`, body: {} };
    const { token: bootstrapToken } = await this.#post(bootstrap, issuedToken);
    const log = pino({ level: "silent" });
    const stateDir = mkdtempSync(join(this.#folder, "state-"));
    const parts = {
      http: nodeHttpClient,
      store: new IdentityStore(diskFiles, stateDir),
      serverClock: new ServerClock(systemClock),
      timers: systemTimers,
      random: Math.random,
      log,
    };
    const keys = await generateNodeKeys();
    const { identity, answer } = await enroll(parts, {
      identity: { platformUrl: this.#server.url, nodeId: node.id, keys, enrolled: null },
      token: bootstrapToken,
      operatingSystem: "none",
      signal: new AbortController().signal,
    });
    return { ...node, identity, identityToken: answer.identityToken };
  }

  async #post<T>(call: Posted, response: z.ZodType<T>): Promise<T> {
    const { token, path, body } = call;
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const init = { method: "POST", headers, body: JSON.stringify(body) };
    const got = await fetch(this.#server.url + path, init);
    if (!got.ok) throw new Error(`POST ${path}: ${got.status} ${await got.text()}`);
    return response.parse(await got.json());
  }
}

interface Group {
  readonly name: string;
  readonly count: number;
}

interface Posted {
  readonly token: string;
  readonly path: string;
  readonly body: object;
}
