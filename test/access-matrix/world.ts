import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@fairlead/protocol/clock";
import { systemIds } from "@fairlead/protocol/ids";
import type { Role } from "@fairlead/protocol/resources";
import { z } from "zod";
import type { Caller } from "../../packages/control-plane/src/auth/route-access.ts";
import { TokenService } from "../../packages/control-plane/src/auth/tokens.ts";
import { loadConfig } from "../../packages/control-plane/src/config.ts";
import { type Installation, openInstallation } from "../../packages/control-plane/src/installation.ts";
import { NodeKey } from "../../packages/control-plane/src/nodes/node.fixture.ts";
import { type RunningServer, startServer } from "../../packages/control-plane/src/server.ts";

/** What a caller sends to say who they are. */
export interface Credential {
  readonly bearer?: string;
  readonly cookie?: string;
}

/** A node with an enrolled daemon. */
export interface EnrolledNode {
  readonly id: string;
  readonly identifier: string;
  readonly key: NodeKey;
  readonly identityToken: string;
}

const createdProject = z.object({ project: z.object({ id: z.string() }) });
const createdKey = z.object({ key: z.object({ id: z.string(), keyValue: z.string() }) });
const createdNode = z.object({ node: z.object({ id: z.string(), identifier: z.string() }) });
const issuedToken = z.object({ token: z.string() });
const enrolled = z.object({ identityToken: z.string(), installationId: z.string() });

const HOUR_MS = 3_600_000;
/** No cell may be spoilt by the limits; they have tests of their own. */
const UNLIMITED = "1000000";

/** A running server, one project with everybody in and around it, and every kind of credential. */
export class World {
  readonly #dataDir = mkdtempSync(join(tmpdir(), "fairlead-matrix-"));
  #server: RunningServer | null = null;
  #installation: Installation | null = null;
  #credentials: Readonly<Record<Caller, Credential>> | null = null;
  #node: EnrolledNode | null = null;
  projectId = "";
  installationId = "";

  static async start(): Promise<World> {
    const world = new World();
    try {
      await world.#fill();
      return world;
    } catch (error) {
      await world.close();
      throw error;
    }
  }

  get server(): RunningServer {
    return there(this.#server);
  }

  /** The node that the callers `node` and `otherNode` have their names from. */
  get node(): EnrolledNode {
    return there(this.#node);
  }

  /** The store itself, for what no route does. */
  get installation(): Installation {
    return there(this.#installation);
  }

  credential(caller: Caller): Credential {
    return there(this.#credentials)[caller];
  }

  /** As the project's owner, who may do everything. */
  async send<T>(
    call: { method: string; path: string; body?: unknown; as?: Credential },
    answer: z.ZodType<T>,
  ): Promise<T> {
    const { bearer } = call.as ?? this.credential("owner");
    const headers = { authorization: `Bearer ${bearer}`, "content-type": "application/json" };
    const { method, path, body } = call;
    const response = await fetch(`${this.server.platformUrl}${path}`, { method, headers, body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return answer.parse(await response.json());
  }

  async createProject(as?: Credential): Promise<string> {
    const call = { method: "POST", path: "/v1/projects", body: { name: "Matrix" } };
    return (await this.send(as ? { ...call, as } : call, createdProject)).project.id;
  }

  async createKey(projectId = this.projectId, as?: Credential): Promise<{ id: string; keyValue: string }> {
    const call = { method: "POST", path: `/v1/projects/${projectId}/keys`, body: { name: "matrix" } };
    return (await this.send(as ? { ...call, as } : call, createdKey)).key;
  }

  async createNode(): Promise<{ id: string; identifier: string }> {
    const body = { projectId: this.projectId, planId: "byo", name: "Box", engineConfig: { preset: "fairlead-demo" } };
    return (await this.send({ method: "POST", path: "/v1/nodes", body }, createdNode)).node;
  }

  async bootstrapToken(nodeId: string): Promise<string> {
    return (await this.send({ method: "POST", path: `/v1/nodes/${nodeId}/bootstrap-tokens` }, issuedToken)).token;
  }

  async close(): Promise<void> {
    await this.#installation?.close();
    await this.#server?.close();
    rmSync(this.#dataDir, { recursive: true });
  }

  async #fill(): Promise<void> {
    const env = {
      FAIRLEAD_DATA_DIR: this.#dataDir,
      FAIRLEAD_SERVER_PLATFORM_PORT: "0",
      FAIRLEAD_SERVER_INFERENCE_PORT: "0",
      FAIRLEAD_LOG_LEVEL: "silent",
      FAIRLEAD_RATE_LIMITS_DAEMONS_PER_ADDRESS: UNLIMITED,
    };
    const config = loadConfig({ env });
    this.#server = await startServer(config);
    const ports = { clock: systemClock, ids: systemIds(() => systemClock.now()) };
    this.#installation = await openInstallation(config, { ...ports, publicUrl: this.#server.platformUrl });
    this.#credentials = await this.#makeCredentials();
  }

  async #makeCredentials(): Promise<Record<Caller, Credential>> {
    const owner = await this.#person("owner");
    const stranger = await this.#person("stranger");
    this.projectId = await this.createProject(owner);
    const elsewhere = await this.createProject(stranger);
    // From here on `send` can act as the owner.
    this.#credentials = { owner } as Record<Caller, Credential>;
    this.#node = await this.#enrolledNode();
    const otherNode = await this.#enrolledNode();
    const bearer = (value: string): Credential => ({ bearer: value });
    return {
      nobody: {},
      malformed: bearer("not-a-credential"),
      expired: await this.#expired(),
      signedOut: await this.#signedOut(),
      stranger,
      viewer: await this.#member("viewer"),
      member: await this.#member("member"),
      admin: await this.#member("admin"),
      owner,
      platformAdmin: await this.#person("root", { platformAdmin: true }),
      browser: { cookie: "fairlead=1" },
      node: bearer(this.#node.identityToken),
      otherNode: bearer(otherNode.identityToken),
      bootstrap: bearer(await this.bootstrapToken((await this.createNode()).id)),
      key: bearer((await this.createKey()).keyValue),
      disabledKey: bearer(await this.#disabledKey()),
      otherKey: bearer((await this.createKey(elsewhere, stranger)).keyValue),
      worker: bearer("eyJ"),
    };
  }

  async #person(name: string, { platformAdmin = false } = {}): Promise<Credential> {
    const { admin } = this.installation;
    const email = emailOf(name);
    await admin.createUser({ email, name, platformAdmin });
    return { bearer: (await admin.createToken({ email, ttlSeconds: 600 })).token };
  }

  async #member(role: Role): Promise<Credential> {
    const credential = await this.#person(role);
    const row = { project_id: this.projectId, user_id: await this.#userId(role), role, created_at: systemClock.now() };
    await this.installation.db.insertInto("member").values(row).execute();
    return credential;
  }

  async #userId(name: string): Promise<string> {
    const query = this.installation.db.selectFrom("user").select("id").where("email", "=", emailOf(name));
    return (await query.executeTakeFirstOrThrow()).id;
  }

  /** Signed by the same key for a session that goes on, two hours ago. */
  async #expired(): Promise<Credential> {
    const { keyRing, record, db } = this.installation;
    const past = { now: () => systemClock.now() - 2 * HOUR_MS, monotonic: () => systemClock.monotonic() };
    const tokens = new TokenService({ keyRing, installationId: record.id, clock: past });
    const row = await db.selectFrom("session").select(["id", "userId"]).executeTakeFirstOrThrow();
    return { bearer: await tokens.issueSession({ userId: row.userId, sessionId: row.id, ttlSeconds: 3600 }) };
  }

  async #signedOut(): Promise<Credential> {
    const credential = await this.#person("gone");
    const userId = await this.#userId("gone");
    await this.installation.db.deleteFrom("session").where("userId", "=", userId).execute();
    return credential;
  }

  async #disabledKey(): Promise<string> {
    const { id, keyValue } = await this.createKey();
    await this.installation.db.updateTable("project_key").set({ enabled: 0 }).where("id", "=", id).execute();
    return keyValue;
  }

  async #enrolledNode(): Promise<EnrolledNode> {
    const node = await this.createNode();
    const key = new NodeKey();
    const bearer = await this.bootstrapToken(node.id);
    const body = key.enrollRequest(node.id, bearer);
    const call = { method: "POST", path: `/v1/nodes/${node.id}/enroll`, body, as: { bearer } };
    const { identityToken, installationId } = await this.send(call, enrolled);
    this.installationId = installationId;
    return { ...node, key, identityToken };
  }
}

const emailOf = (name: string): string => `${name}@example.org`;

function there<T>(value: T | null): T {
  if (value === null) throw new Error("the world has not started");
  return value;
}
