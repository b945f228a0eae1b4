import { NO_LIMITS } from "@fairlead/protocol/key-limits";
import { countingIds, TestClock } from "@fairlead/protocol/testing/test-clock";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { NodeChangeFeed } from "../../fleet/nodes/node-change-feed.ts";
import type { OpenedDatabase } from "../../installation/db/open.ts";
import { openMemoryStore } from "../../testing.fixture.ts";
import type { Membership } from "./access.ts";
import type { NodeIdentities, SignInSessions } from "./authenticate.ts";
import { type Credentials, createCredentials } from "./credentials.ts";
import { type KeyRing, openKeyRing } from "./sealing/key-ring.ts";
import { KeyRingStore } from "./sealing/key-ring-store.ts";
import { memorySealer } from "./sealing/memory-sealer.ts";
import { TokenService } from "./tokens/tokens.ts";
import type { AgentIdentity } from "./tokens/worker-token.ts";

describe("signed credentials", () => {
  const clock = new TestClock();
  const worker = { agentId: "agt_1", nodeId: "nod_1", projectId: "prj_1", run: 1 } as const;
  let store: OpenedDatabase;
  let keyRing: KeyRing;
  let tokens: TokenService;
  let sessionToken: string;
  let nodeToken: string;
  let workerToken: string;
  let session: Awaited<ReturnType<SignInSessions["find"]>>;
  let node: Awaited<ReturnType<NodeIdentities["find"]>>;
  let agent: AgentIdentity | null;
  let membership: Membership | null;
  let asked: number;
  let changes: NodeChangeFeed;
  let agentChanged: (change: { readonly agentId: string }) => void;
  let ended: (ids: readonly string[]) => void;
  let credentials: Credentials;

  beforeAll(async () => {
    store = await openMemoryStore();
    const ids = countingIds();
    keyRing = await openKeyRing({ store: new KeyRingStore(store.db), sealer: memorySealer(), clock, ids });
    tokens = new TokenService({ keyRing, installationId: "ins_1", clock });
  });
  afterAll(() => store.close());
  beforeEach(async () => {
    session = { userId: "usr_1", platformAdmin: false };
    membership = { role: "admin", deleting: false };
    node = { projectId: "prj_1", signingKeyThumbprint: "thumb" };
    agent = { projectId: "prj_1", nodeId: "nod_1", run: 1, live: true, limits: NO_LIMITS };
    asked = 0;
    changes = new NodeChangeFeed();
    credentials = createCredentials({
      clock,
      tokens,
      keyRing,
      users: {
        find: async () => {
          asked += 1;
          return session;
        },
      },
      sessions: {
        listen: (listener) => {
          ended = listener;
        },
      },
      identities: {
        find: async () => {
          asked += 1;
          return node;
        },
      },
      memberships: { membershipOf: async () => membership },
      changes,
      agentAccess: {
        find: async () => {
          asked += 1;
          return agent;
        },
      },
      agentChanges: {
        listen: (listener) => {
          agentChanged = listener;
        },
      },
      publicUrl: "https://fairlead.example.org",
      modelsUrl: "https://models.example.org",
    });
    sessionToken = await tokens.issueSession({ userId: "usr_1", sessionId: "sis_1", ttlSeconds: 600 });
    const identity = { nodeId: "nod_1", projectId: "prj_1", keyThumbprint: "thumb", ttlSeconds: 600 };
    nodeToken = await tokens.issueNodeIdentity(identity);
    workerToken = await tokens.issueWorker({ ...worker, keyThumbprint: "thumb", ttlSeconds: 600 });
    asked = 0;
  });

  const asUser = (): Promise<unknown> => credentials.authenticate(`Bearer ${sessionToken}`, ["user"]);
  const asNode = (): Promise<unknown> => credentials.authenticate(`Bearer ${nodeToken}`, ["node"]);
  const asWorker = (): Promise<unknown> => credentials.workers.authenticate(workerToken);
  const revoked = { code: "invalid_credential" };

  test("cause one store read a second, however many calls are made", async () => {
    for (let call = 0; call < 10; call++) await asUser();
    expect(asked).toBe(1);
    clock.advance(1000);
    await asUser();
    expect(asked).toBe(2);
  });

  test("of an ended session are rejected immediately with notice, and within a second without notice", async () => {
    await asUser();
    session = null;
    ended(["sis_1"]);
    await expect(asUser()).rejects.toMatchObject(revoked);
    session = { userId: "usr_1", platformAdmin: true };
    expect(await asUser()).toMatchObject({ platformAdmin: true });
    session = null;
    clock.advance(1000);
    await expect(asUser()).rejects.toMatchObject(revoked);
  });

  test.each([
    ["deleted", "removed", null],
    ["enrolled again", "status", { projectId: "prj_1", signingKeyThumbprint: "newer" }],
  ] as const)("of a node that was %s, and of its workers, are rejected immediately", async (...[, aspect, now]) => {
    await Promise.all([asNode(), asWorker()]);
    node = now;
    changes.emit({ aspect, nodeId: "nod_1", projectId: "prj_1" });
    await expect(asNode()).rejects.toMatchObject(revoked);
    await expect(asWorker()).rejects.toMatchObject(revoked);
  });

  test("of a node deleted without notice, and of its workers, are rejected within a second", async () => {
    await Promise.all([asNode(), asWorker()]);
    node = null;
    clock.advance(1000);
    await expect(asNode()).rejects.toMatchObject(revoked);
    await expect(asWorker()).rejects.toMatchObject(revoked);
  });

  const ENDS = [
    ["stopped", { live: false }],
    ["moved", { nodeId: "nod_2" }],
    ["restarted", { run: 2 }],
    ["deleted", null],
  ] as const;

  test.each(ENDS)("of an agent that was %s are rejected immediately with notice", async (...[, change]) => {
    expect(await asWorker()).toMatchObject({ agentId: "agt_1" });
    agent = change && agent && { ...agent, ...change };
    agentChanged({ agentId: "agt_1" });
    await expect(asWorker()).rejects.toMatchObject(revoked);
  });

  test.each(ENDS)("of an agent that was %s are rejected within a second without notice", async (...[, change]) => {
    await asWorker();
    agent = change && agent && { ...agent, ...change };
    clock.advance(1000);
    await expect(asWorker()).rejects.toMatchObject(revoked);
  });

  test("of agents cause one agent lookup a second, however many calls are made", async () => {
    clock.advance(1000);
    for (let call = 0; call < 10; call++) await asWorker();
    // The node and the agent.
    expect(asked).toBe(2);
  });

  test("that cannot be checked are reported as a store failure, never as invalid, from the first second", async () => {
    await Promise.all([asUser(), asWorker()]);
    session = null;
    const away = Object.assign(new Error("connect"), { code: "ECONNREFUSED" });
    const find = (): Promise<never> => Promise.reject(away);
    const { authenticate, workers } = createCredentials({
      clock,
      tokens,
      keyRing,
      users: { find },
      sessions: { listen: () => undefined },
      identities: { find },
      memberships: { membershipOf: find },
      changes,
      agentAccess: { find },
      agentChanges: { listen: () => undefined },
      publicUrl: "",
      modelsUrl: "",
    });
    await expect(authenticate(`Bearer ${sessionToken}`, ["user"])).rejects.toBe(away);
    await expect(workers.authenticate(workerToken)).rejects.toBe(away);
  });
});
