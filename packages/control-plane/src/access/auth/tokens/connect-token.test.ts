import { countingIds, TestClock } from "@fairlead/protocol/testing/test-clock";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { OpenedDatabase } from "../../../installation/db/open.ts";
import { openMemoryStore } from "../../../testing.fixture.ts";
import type { Membership } from "../access.ts";
import { createAuthenticate, type NodeIdentity } from "../authenticate.ts";
import { type KeyRing, openKeyRing } from "../sealing/key-ring.ts";
import { KeyRingStore } from "../sealing/key-ring-store.ts";
import { memorySealer } from "../sealing/memory-sealer.ts";
import { ConnectTokens } from "./connect-token.ts";
import { TokenService } from "./tokens.ts";
import { WorkerTokens } from "./worker-token.ts";

const NODE = "nod_1";
const asked = { nodeId: NODE, workload: "engine", projectId: "prj_1" } as const;
const byPerson = { ...asked, holder: { userId: "usr_1", sessionId: "sis_1" } } as const;
const byNode = { ...asked, holder: null } as const;

describe("workload-connect tokens", () => {
  const clock = new TestClock();
  let store: OpenedDatabase;
  let keyRing: KeyRing;
  let tokens: TokenService;
  let node: NodeIdentity | null;
  let session: { userId: string; platformAdmin: boolean } | null;
  let membership: Membership | null;
  let connect: ConnectTokens;

  beforeAll(async () => {
    store = await openMemoryStore();
    const options = { store: new KeyRingStore(store.db), sealer: memorySealer(), clock, ids: countingIds() };
    keyRing = await openKeyRing(options);
    tokens = new TokenService({ keyRing, installationId: "ins_1", clock });
    connect = new ConnectTokens({
      tokens,
      verified: tokens,
      nodes: { find: async () => node },
      sessions: { find: async () => session },
      memberships: { find: async () => membership },
    });
  });
  afterAll(() => store.close());
  beforeEach(() => {
    node = { projectId: "prj_1", signingKeyThumbprint: "thumb" };
    session = { userId: "usr_1", platformAdmin: false };
    membership = { role: "admin", deleting: false };
  });

  test.each([byPerson, byNode])("identify the workload and node that they open, and their holder", async (request) => {
    const claims = await connect.authenticate(await connect.issue(request));
    expect(claims).toEqual({ audience: "workload", ...request, keyThumbprint: "thumb" });
  });

  test("are issued only for an enrolled node of the project", async () => {
    for (const found of [null, { projectId: "prj_2", signingKeyThumbprint: "thumb" }]) {
      node = found;
      await expect(connect.issue(byPerson)).rejects.toMatchObject({ code: "node_not_enrolled" });
    }
  });

  const endings: readonly (readonly [string, () => void])[] = [
    ["the node", () => (node = null)],
    ["the node's place in the project", () => (node = { projectId: "prj_2", signingKeyThumbprint: "thumb" })],
    ["the node's identity", () => (node = { projectId: "prj_1", signingKeyThumbprint: "newer" })],
    ["the project", () => (node = { projectId: "prj_1", signingKeyThumbprint: "thumb", projectDeleting: true })],
    ["the session", () => (session = null)],
    ["a session of another user", () => (session = { userId: "usr_2", platformAdmin: true })],
    ["the membership", () => (membership = null)],
    ["the role", () => (membership = { role: "member", deleting: false })],
  ];

  test.each(endings)("end immediately with %s, including what is already open", async (_what, end) => {
    const token = await connect.issue(byPerson);
    const claims = await connect.authenticate(token);
    end();
    await expect(connect.authenticate(token)).rejects.toMatchObject({ code: "invalid_credential" });
    await expect(connect.confirm(claims)).rejects.toMatchObject({ code: "invalid_credential" });
  });

  test("of the node itself depend on no session and no membership", async () => {
    const token = await connect.issue(byNode);
    [session, membership] = [null, null];
    expect(await connect.authenticate(token)).toMatchObject({ holder: null });
  });

  test("expire after fifteen minutes, plus one minute for clock skew", async () => {
    const token = await connect.issue(byPerson);
    clock.advance(959_000);
    await connect.authenticate(token);
    clock.advance(2000);
    await expect(connect.authenticate(token)).rejects.toMatchObject({ code: "expired_credential" });
  });

  test("remain valid after a rotation of the signing key", async () => {
    const token = await connect.issue(byPerson);
    await keyRing.rotate();
    expect(await connect.authenticate(token)).toMatchObject({ nodeId: NODE });
  });

  test("are not accepted as other tokens, nor other tokens as these", async () => {
    const asPerson = await tokens.issueSession({ userId: "usr_1", sessionId: "sis_1", ttlSeconds: 60 });
    const identity = { nodeId: NODE, projectId: "prj_1", keyThumbprint: "thumb", ttlSeconds: 60 };
    const worker = await tokens.issueWorker({ ...identity, agentId: "agt_1", run: 1 });
    for (const other of [asPerson, await tokens.issueNodeIdentity(identity), worker, "a.b.c"]) {
      await expect(connect.authenticate(other)).rejects.toMatchObject({ code: "invalid_credential" });
    }
    const token = await connect.issue(byNode);
    const sessions = { find: async () => session };
    const nodes = { find: async () => node };
    const authenticate = createAuthenticate({ tokens, sessions, nodes, modelsUrl: "https://models" });
    await expect(authenticate(`Bearer ${token}`, ["user", "node"])).rejects.toThrow("workload-connect token");
    const agents = { find: () => null };
    const workers = new WorkerTokens({ verified: tokens, nodes, agents, publicUrl: "https://platform" });
    await expect(workers.authenticate(token)).rejects.toMatchObject({ code: "invalid_credential" });
  });
});
