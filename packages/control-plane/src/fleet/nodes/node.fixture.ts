import { createHash, generateKeyPairSync, sign } from "node:crypto";
import { type DaemonBuild, daemonBuildFile, type NamedBuild } from "@fairlead/protocol/daemon-builds";
import type { EngineConfig } from "@fairlead/protocol/engine-config";
import type { EnrollRequest, SigningPublicKey } from "@fairlead/protocol/enrollment";
import { signingPublicKeySchema } from "@fairlead/protocol/enrollment";
import { DomainError } from "@fairlead/protocol/errors";
import type { Role } from "@fairlead/protocol/resources";
import { countingIds, TestClock } from "@fairlead/protocol/testing/test-clock";
import type { DesiredState, WorkloadReport } from "@fairlead/protocol/workload";
import type { Kysely } from "kysely";
import { pino } from "pino";
import { AuditService } from "../../access/audit/audit-service.ts";
import { type Memberships, ProjectAccess } from "../../access/auth/access.ts";
import type { CallOrigin, UserPrincipal } from "../../access/auth/principal.ts";
import { memorySealer } from "../../access/auth/sealing/memory-sealer.ts";
import { NodeSealingKey } from "../../access/auth/sealing/node-sealing.fixture.ts";
import type { OpenedDatabase } from "../../installation/db/open.ts";
import type { Database } from "../../installation/db/tables/schema.ts";
import { ProjectNames } from "../../models/names/project-names.ts";
import { BoundCounters } from "../../telemetry/bounds/bound-counters.ts";
import { fixedMemberships, insertProject, insertUser, type OpenStore, openMemoryStore } from "../../testing.fixture.ts";
import { SecretService } from "../secrets/secret-service.ts";
import { SecretStore } from "../secrets/secret-store.ts";
import type { NodeCalls } from "./actions/node-drain-service.ts";
import type { NodeMachines } from "./actions/node-machines.ts";
import type { AgentHistories, AgentsOnNode } from "./desired/agents-on-node.ts";
import type { NodeRecord } from "./node.ts";
import { createNodeServices, type NodeServices } from "./node-room.ts";
import { DEFAULT_NODE_LIVENESS, type NodeLivenessOptions } from "./observed/node-liveness.ts";
import { type NodeStores, nodeStores } from "./records/node-stores.ts";

/** The node services on a store in memory, with a clock that only the test moves and two projects with their owners. */

export const PROJECT = "prj_a";
export const OTHER_PROJECT = "prj_b";
export const OWNER: UserPrincipal = { kind: "user", userId: "usr_a", platformAdmin: false };
export const STRANGER: UserPrincipal = { kind: "user", userId: "usr_b", platformAdmin: false };
export const VIEWER: UserPrincipal = { kind: "user", userId: "usr_v", platformAdmin: false };
export const ORIGIN: CallOrigin = { requestId: "req_test", address: "192.0.2.1" };
export const INSTALLATION = { id: "ins_test", epoch: "epo_test" };

/** What can be asked for; the last speaks a link of the future. */
export const OFFERED: readonly DaemonBuild[] = [
  { version: "1.2.3", protocolVersions: [1] },
  { version: "1.3.0", protocolVersions: [1, 2] },
  { version: "9.0.0", protocolVersions: [9] },
].map((build) => ({
  ...build,
  commit: "c",
  committedAt: "2026-01-01T00:00:00Z",
  files: [{ arch: "x64", file: daemonBuildFile(build.version, "x64"), sha256: "ab".repeat(32), bytes: 1000 }],
}));

export const NAMED_BUILD: NamedBuild = { version: "1.2.3", sha256: { x64: "ab".repeat(32) } };

const ROLES: readonly { readonly userId: string; readonly projectId: string; readonly role: Role }[] = [
  { userId: OWNER.userId, projectId: PROJECT, role: "owner" },
  { userId: VIEWER.userId, projectId: PROJECT, role: "viewer" },
  { userId: STRANGER.userId, projectId: OTHER_PROJECT, role: "owner" },
];

const MEMBERSHIPS: Memberships = {
  ...fixedMemberships(
    (projectId, userId) =>
      ROLES.find((member) => member.userId === userId && member.projectId === projectId)?.role ?? null,
  ),
  rolesOf: async (userId) => ROLES.filter((member) => member.userId === userId),
};

export interface NodeFixture extends NodeServices {
  readonly access: ProjectAccess;
  readonly audit: AuditService;
  readonly bounds: BoundCounters;
  readonly clock: TestClock;
  readonly store: OpenedDatabase;
  readonly stores: NodeStores;
  create(name: string, engineConfig?: EngineConfig | null): Promise<NodeRecord>;
  readonly secrets: SecretStore;
  /** Enrols a daemon for the node. */
  enroll(nodeId: string): Promise<NodeKey>;
  /** A node whose daemon has enrolled; its status is `starting`. */
  createEnrolled(name: string, engineConfig?: EngineConfig | null): Promise<{ node: NodeRecord; key: NodeKey }>;
  statusOf(nodeId: string): Promise<string | undefined>;
  close(): Promise<void>;
}

export interface NodeFixtureOptions {
  readonly liveness?: Partial<NodeLivenessOptions>;
  readonly calls?: NodeCalls;
  readonly agents?: AgentsOnNode;
  readonly histories?: (db: Kysely<Database>, clock: TestClock) => AgentHistories;
  readonly machines?: (db: Kysely<Database>, clock: TestClock) => NodeMachines;
  /** By the real clock, since that is what a drain waits by. */
  readonly drainMs?: number;
  readonly maxEventRows?: number;
}

const PEOPLE = { get: async (userId: string) => ({ email: `${userId}@example.org` }) };

/** Nobody has agents. */
const NO_AGENTS: AgentsOnNode = { plannedOn: async () => [], connectorsOn: async () => [] };

/** Nobody rents machines. */
const OWN_MACHINES: NodeMachines = {
  prepare: () => Promise.reject(new DomainError("invalid_request", "no such plan", { param: "planId" })),
  checkToken: () => Promise.reject(new DomainError("invalid_request", "no machine", { param: "providerToken" })),
  release: async () => false,
};

const IDLE: NodeCalls = { drain: async () => undefined, hold: () => undefined };

const SURROUNDINGS = {
  people: PEOPLE,
  installation: INSTALLATION,
  publicUrl: "http://127.0.0.1:8080",
  builds: { forNewNodes: async () => NAMED_BUILD, list: async () => OFFERED },
  issuer: {
    issueNodeIdentity: async ({ nodeId, keyThumbprint }: { readonly nodeId: string; readonly keyThumbprint: string }) =>
      `identity ${nodeId} ${keyThumbprint}`,
  },
  log: pino({ level: "silent" }),
};

const NO_HISTORIES: AgentHistories = { take: async () => undefined };

const DEFAULTS = {
  liveness: {},
  calls: IDLE,
  agents: NO_AGENTS,
  histories: () => NO_HISTORIES,
  machines: () => OWN_MACHINES,
  drainMs: 50,
  maxEventRows: 10_000,
};

export async function nodeFixture(
  open: OpenStore = openMemoryStore,
  options: NodeFixtureOptions = {},
): Promise<NodeFixture> {
  const { liveness, calls, agents, histories, machines, ...figures } = { ...DEFAULTS, ...options };
  const store = await open();
  const { db, writeTogether } = store;
  const clock = new TestClock();
  const ports = { clock, ids: countingIds() };
  const stores = nodeStores(db);
  const bounds = new BoundCounters();
  await insertProjects(store);
  const access = new ProjectAccess(MEMBERSHIPS);
  const audit = new AuditService(ports);
  const services = createNodeServices({
    ...ports,
    db,
    writeTogether,
    names: new ProjectNames(["openai"]),
    access,
    secrets: new SecretService({ kind: "node", db, sealer: memorySealer(), clock }),
    audit,
    ...SURROUNDINGS,
    liveness: { ...DEFAULT_NODE_LIVENESS, ...liveness },
    calls,
    agents,
    histories: histories(db, clock),
    machines: machines(db, clock),
    ...figures,
    bounds,
  });
  const create: NodeFixture["create"] = (name, engineConfig = { preset: "fairlead-demo" }) =>
    services.nodes.create(OWNER, { projectId: PROJECT, planId: "byo", name, directSecrets: false, engineConfig });
  const enroll = async (nodeId: string): Promise<NodeKey> => {
    const key = new NodeKey();
    const { token } = await services.enrollment.issueBootstrapToken(OWNER, nodeId);
    const request = key.enrollRequest(nodeId, token);
    await services.enrollment.enroll({ nodeId, bootstrapToken: token, request, origin: ORIGIN });
    return key;
  };
  return {
    ...services,
    bounds,
    access,
    audit,
    clock,
    store,
    stores,
    secrets: new SecretStore(db, "node"),
    create,
    enroll,
    createEnrolled: async (name, engineConfig) => {
      const node = await create(name, engineConfig);
      return { node, key: await enroll(node.id) };
    },
    statusOf: async (nodeId) => (await stores.nodes.find(nodeId))?.status,
    close: () => store.close(),
  };
}

async function insertProjects(store: OpenedDatabase): Promise<void> {
  for (const { userId, projectId } of ROLES.filter(({ role }) => role === "owner")) {
    await insertUser(store, userId);
    await insertProject(store, projectId, userId);
  }
}

/** A daemon's keys, and what it signs with them. */
export class NodeKey {
  readonly #pair = generateKeyPairSync("ed25519");
  readonly signingKey: SigningPublicKey = signingPublicKeySchema.parse(this.#pair.publicKey.export({ format: "jwk" }));

  readonly sealing = new NodeSealingKey();

  enrollRequest(nodeId: string, bootstrapToken: string): EnrollRequest {
    const bootstrapTokenSha256 = createHash("sha256").update(bootstrapToken).digest("hex");
    return {
      signingKey: this.signingKey,
      sealingKey: this.sealing.publicKey,
      proof: this.sign({ sub: nodeId, bootstrapTokenSha256 }),
      daemonVersion: "0.1.0",
      protocolVersions: [1],
      operatingSystem: "Debian GNU/Linux 12",
    };
  }

  sign(claims: Record<string, unknown>): string {
    const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");
    const signed = `${part({ alg: "EdDSA" })}.${part(claims)}`;
    return `${signed}.${sign(null, Buffer.from(signed), this.#pair.privateKey).toString("base64url")}`;
  }
}

/** A report for the first workload of the desired state. */
export function reportFor(desired: DesiredState, changes: Partial<WorkloadReport> = {}): WorkloadReport {
  return {
    workloadId: desired.workloads[0]?.workloadId ?? "",
    workloadType: "WORKLOAD_TYPE_ENGINE",
    ready: true,
    state: "running",
    version: "1.0",
    image: "fairlead/demo-engine:1",
    imageDigest: `sha256:${"0".repeat(64)}`,
    generation: desired.generation,
    models: ["tinychat-6m"],
    startedAt: "2026-01-01T00:00:00.000Z",
    restartCount: 0,
    lastExit: null,
    message: "",
    ...changes,
  };
}
