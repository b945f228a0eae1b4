import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Role } from "@fairlead/protocol/resources";
import { workloadConnectSchema } from "@fairlead/protocol/workload-connect";
import { z } from "zod";
import type { Caller } from "../../packages/control-plane/src/access/auth/route-access.ts";
import { TokenService } from "../../packages/control-plane/src/access/auth/tokens/tokens.ts";
import { NodeKey } from "../../packages/control-plane/src/fleet/nodes/node.fixture.ts";
import { loadConfig } from "../../packages/control-plane/src/installation/config/config.ts";
import {
  type Installation,
  openInstallation,
} from "../../packages/control-plane/src/installation/installation-room.ts";
import { type RunningServer, startServer } from "../../packages/control-plane/src/server.ts";
import { rfc3339, systemClock } from "../../packages/protocol/src/values/clock.ts";
import { systemIds } from "../../packages/protocol/src/values/ids.ts";
import { StubIssuer } from "./stub-issuer.ts";
import { Visitor } from "./visitor.ts";
import { workerToken } from "./worker-token.ts";

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
const createdInvitation = z.object({ invitation: z.object({ id: z.string() }), url: z.string() });
const issuedToken = z.object({ token: z.string() });
const enrolled = z.object({ identityToken: z.string(), installationId: z.string() });

const HOUR_MS = 3_600_000;
export const PASSWORD = "correct horse battery staple";
/** Of the one OIDC provider that people may sign in by. */
export const PROVIDER = "stub";
/** No cell may be spoilt by the limits; they have tests of their own. */
const UNLIMITED = "1000000";

/** Somebody who was made for one cell. */
export interface Person {
  readonly email: string;
  readonly visitor: Visitor;
  /** Signs in once more. @returns the session's id. */
  readonly anotherSession: () => Promise<string>;
  /** Connects an account of the OIDC provider. */
  readonly link: () => Promise<void>;
}

/** Callers that are people, and what their accounts are called. */
const PERSON_OF_CALLER: Readonly<Partial<Record<Caller, string>>> = {
  stranger: "stranger",
  viewer: "viewer",
  member: "member",
  admin: "admin",
  owner: "owner",
  platformAdmin: "root",
};

const NO_TOKENS = {
  accessToken: null,
  refreshToken: null,
  idToken: null,
  accessTokenExpiresAt: null,
  refreshTokenExpiresAt: null,
  scope: null,
  password: null,
};

/** A running server, one project with everybody in and around it, and every kind of credential. */
export class World {
  readonly dataDir = mkdtempSync(join(tmpdir(), "fairlead-world-"));
  #issuer: StubIssuer | null = null;
  #server: RunningServer | null = null;
  #visitor: Visitor | null = null;
  #people = 0;
  #installation: Installation | null = null;
  #credentials: Readonly<Record<Caller, Credential>> | null = null;
  #node: EnrolledNode | null = null;
  projectId = "";
  installationId = "";

  /** @param databaseUrl of a PostgreSQL; none: SQLite. */
  static async start(databaseUrl?: string): Promise<World> {
    const world = new World();
    try {
      await world.#fill(databaseUrl);
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

  /** The browser that the caller `browser` has its cookie from. */
  get visitor(): Visitor {
    return there(this.#visitor);
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

  /** A project with the same members in the same roles. */
  async createSameProject(): Promise<string> {
    const { db } = this.installation;
    const id = await this.createProject();
    const rows = await db.selectFrom("member").selectAll().where("project_id", "=", this.projectId).execute();
    const others = rows.filter(({ role }) => role !== "owner").map((row) => ({ ...row, project_id: id }));
    await db.insertInto("member").values(others).execute();
    return id;
  }

  async createKey(projectId = this.projectId, as?: Credential): Promise<{ id: string; keyValue: string }> {
    const call = { method: "POST", path: `/v1/projects/${projectId}/keys`, body: { name: "matrix" } };
    return (await this.send(as ? { ...call, as } : call, createdKey)).key;
  }

  async createNode(): Promise<{ id: string; identifier: string }> {
    const body = { projectId: this.projectId, planId: "byo", name: "Box", engineConfig: { preset: "fairlead-demo" } };
    return (await this.send({ method: "POST", path: "/v1/nodes", body }, createdNode)).node;
  }

  /** A new node with a daemon. */
  async enrolledNode(): Promise<EnrolledNode> {
    const node = await this.createNode();
    const key = new NodeKey();
    const bearer = await this.bootstrapToken(node.id);
    const body = key.enrollRequest(node.id, bearer);
    const call = { method: "POST", path: `/v1/nodes/${node.id}/enroll`, body, as: { bearer } };
    const { identityToken, installationId } = await this.send(call, enrolled);
    this.installationId = installationId;
    return { ...node, key, identityToken };
  }

  /** @returns its id, and the path of its page. */
  async invite(): Promise<{ id: string; path: string }> {
    const body = { email: emailOf(this.#newName()), role: "member" };
    const call = { method: "POST", path: `/v1/projects/${this.projectId}/members`, body };
    const { invitation, url } = await this.send(call, createdInvitation);
    return { id: invitation.id, path: new URL(url).pathname };
  }

  /** Somebody new in the project. @returns their user id. */
  async newMember(): Promise<string> {
    const name = this.#newName();
    await this.#member("member", name);
    return this.#userId(name);
  }

  async bootstrapToken(nodeId: string): Promise<string> {
    return (await this.send({ method: "POST", path: `/v1/nodes/${nodeId}/bootstrap-tokens` }, issuedToken)).token;
  }

  /** A browser in which nobody is signed in. */
  newVisitor(): Visitor {
    return new Visitor(this.server.platformUrl);
  }

  /** Somebody whom nobody else is, signed in with the password that all have. */
  async newPerson(): Promise<Person> {
    const name = this.#newName();
    const visitor = this.newVisitor();
    await visitor.submit(await this.resetPath(name), { email: emailOf(name), password: PASSWORD });
    const userId = await this.#userId(name);
    return {
      email: emailOf(name),
      visitor,
      anotherSession: () => this.#anotherSession(name),
      link: async () => {
        const at = rfc3339(systemClock.now());
        const row = { id: `acc_${name}`, accountId: name, providerId: PROVIDER, userId, createdAt: at, updatedAt: at };
        await this.installation.db
          .insertInto("account")
          .values({ ...NO_TOKENS, ...row })
          .execute();
      },
    };
  }

  /** Where somebody sets a password; a newer link for the same person would make it void. */
  async resetPath(name = this.#newName()): Promise<string> {
    const { admin } = this.installation;
    await admin.createUser({ email: emailOf(name), name, platformAdmin: false });
    return new URL((await admin.resetLink({ email: emailOf(name) })).url).pathname;
  }

  /** Null for callers that are no people. */
  async anotherSessionOf(caller: Caller): Promise<string | null> {
    const name = PERSON_OF_CALLER[caller];
    return name === undefined ? null : this.#anotherSession(name);
  }

  /** A chat session of the caller's own; of somebody who is nobody, the owner's. */
  async newChatSession(caller: Caller): Promise<string> {
    const now = systemClock.now();
    const row = {
      id: systemIds(() => now).next("chatSession"),
      project_id: this.projectId,
      user_id: await this.#userId(PERSON_OF_CALLER[caller] ?? "owner"),
      opened_from: null,
      model: null,
      message_count: 0,
      item_count: 0,
      next_position: 1,
      last_turn_id: null,
      created_at: now,
      updated_at: now,
      deleted_at: null,
      titled_by_person: 0,
      title: "Matrix",
      search_title: "matrix",
      metadata: "{}",
    };
    await this.installation.db.insertInto("chat_session").values(row).execute();
    return row.id;
  }

  async stylesheetPath(): Promise<string> {
    const { text } = await this.newVisitor().open("/sign-in");
    const path = /href="(\/assets\/[^"]+\.css)"/.exec(text)?.[1];
    if (path === undefined) throw new Error("the sign-in page has no stylesheet");
    return path;
  }

  async close(): Promise<void> {
    await this.#installation?.close();
    await this.#server?.close();
    this.#issuer?.close();
    rmSync(this.dataDir, { recursive: true });
  }

  async #fill(databaseUrl: string | undefined): Promise<void> {
    this.#issuer = await StubIssuer.start();
    const provider = { id: PROVIDER, name: "Stub", issuer: this.#issuer.url, clientId: "matrix" };
    const env = {
      FAIRLEAD_DATA_DIR: this.dataDir,
      FAIRLEAD_DATABASE_URL: databaseUrl,
      FAIRLEAD_SERVER_PLATFORM_PORT: "0",
      FAIRLEAD_SERVER_INFERENCE_PORT: "0",
      FAIRLEAD_LOG_LEVEL: "silent",
      FAIRLEAD_RATE_LIMITS_DAEMONS_PER_ADDRESS: UNLIMITED,
      FAIRLEAD_RATE_LIMITS_INVITATIONS_PER_USER: UNLIMITED,
      FAIRLEAD_RATE_LIMITS_LINKS_PER_ADDRESS: UNLIMITED,
      FAIRLEAD_RATE_LIMITS_OAUTH_CALLS_PER_ADDRESS: UNLIMITED,
      FAIRLEAD_RATE_LIMITS_UPGRADES_PER_ADDRESS: UNLIMITED,
      FAIRLEAD_SIGN_IN_OIDC: JSON.stringify([provider]),
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
    this.#node = await this.enrolledNode();
    const otherNode = await this.enrolledNode();
    this.#visitor = (await this.newPerson()).visitor;
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
      browser: { cookie: this.#visitor.cookie },
      node: bearer(this.#node.identityToken),
      otherNode: bearer(otherNode.identityToken),
      bootstrap: bearer(await this.bootstrapToken((await this.createNode()).id)),
      key: bearer((await this.createKey()).keyValue),
      disabledKey: bearer(await this.#disabledKey()),
      otherKey: bearer((await this.createKey(elsewhere, stranger)).keyValue),
      worker: bearer(await workerToken(this.installation, this.projectId, this.#node)),
      connect: bearer(await this.#connectToken(this.#node)),
    };
  }

  async #person(name: string, { platformAdmin = false } = {}): Promise<Credential> {
    const { admin } = this.installation;
    const email = emailOf(name);
    await admin.createUser({ email, name, platformAdmin });
    return { bearer: (await admin.createToken({ email, ttlSeconds: 600 })).token };
  }

  async #member(role: Role, name: string = role): Promise<Credential> {
    const credential = await this.#person(name);
    const row = { project_id: this.projectId, user_id: await this.#userId(name), role, created_at: systemClock.now() };
    await this.installation.db.insertInto("member").values(row).execute();
    return credential;
  }

  #newName(): string {
    this.#people += 1;
    return `person${this.#people}`;
  }

  async #anotherSession(name: string): Promise<string> {
    const { token } = await this.installation.admin.createToken({ email: emailOf(name), ttlSeconds: 600 });
    const [, claims = ""] = token.split(".");
    const { sid } = z.object({ sid: z.string() }).parse(JSON.parse(Buffer.from(claims, "base64url").toString()));
    return sid;
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

  async #connectToken({ id, identityToken }: EnrolledNode): Promise<string> {
    const call = { method: "GET", path: `/v1/nodes/${id}/workload-connect`, as: { bearer: identityToken } };
    return (await this.send(call, workloadConnectSchema)).authToken;
  }

  async #disabledKey(): Promise<string> {
    const { id, keyValue } = await this.createKey();
    await this.installation.db.updateTable("project_key").set({ enabled: 0 }).where("id", "=", id).execute();
    return keyValue;
  }
}

const emailOf = (name: string): string => `${name}@example.org`;

function there<T>(value: T | null): T {
  if (value === null) throw new Error("the world has not started");
  return value;
}
