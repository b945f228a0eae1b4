import { NO_LIMITS } from "@fairlead/protocol/key-limits";
import { countingIds, TestClock } from "@fairlead/protocol/testing/test-clock";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { OpenedDatabase } from "../../../installation/db/open.ts";
import { openMemoryStore } from "../../../testing.fixture.ts";
import type { NodeIdentities } from "../authenticate.ts";
import { openKeyRing } from "../sealing/key-ring.ts";
import { KeyRingStore } from "../sealing/key-ring-store.ts";
import { memorySealer } from "../sealing/memory-sealer.ts";
import { TokenService } from "./tokens.ts";
import { type AgentIdentity, WorkerTokens } from "./worker-token.ts";

describe("worker-plane tokens", () => {
  const clock = new TestClock();
  const worker = { agentId: "agt_1", nodeId: "nod_1", projectId: "prj_1", run: 4 } as const;
  let store: OpenedDatabase;
  let tokens: TokenService;
  let node: Awaited<ReturnType<NodeIdentities["find"]>>;
  let agent: AgentIdentity | null;
  let workers: WorkerTokens;

  beforeAll(async () => {
    store = await openMemoryStore();
    const keyRing = await openKeyRing({
      store: new KeyRingStore(store.db),
      sealer: memorySealer(),
      clock,
      ids: countingIds(),
    });
    tokens = new TokenService({ keyRing, installationId: "ins_1", clock });
    const nodes = { find: async () => node };
    const agents = { find: async () => agent };
    workers = new WorkerTokens({ verified: tokens, nodes, agents, publicUrl: "https://fairlead.example.org" });
  });
  afterAll(() => store.close());
  beforeEach(() => {
    node = { projectId: "prj_1", signingKeyThumbprint: "thumb" };
    agent = standing();
  });

  const issue = (): Promise<string> => tokens.issueWorker({ ...worker, keyThumbprint: "thumb", ttlSeconds: 3600 });
  const standing = (change: Partial<AgentIdentity> = {}): AgentIdentity => {
    const { agentId: _, ...placed } = worker;
    return { ...placed, live: true, limits: NO_LIMITS, ...change };
  };

  test("authenticate as their agent, node and project, with the agent's current limits", async () => {
    const token = await issue();
    const { run: _, ...named } = worker;
    expect(await workers.authenticate(token)).toEqual({ kind: "worker", ...named, limits: NO_LIMITS });
    const limits = { ...NO_LIMITS, parallelCalls: 2 };
    agent = standing({ limits });
    expect(await workers.authenticate(token)).toMatchObject({ limits });
  });

  test.each([
    ["was deleted", null],
    ["was stopped", standing({ live: false })],
    ["has no node", standing({ nodeId: null })],
    ["was moved to another node", standing({ nodeId: "nod_2" })],
    ["belongs to another project", standing({ projectId: "prj_2" })],
    ["was restarted on the same node", standing({ run: 5 })],
  ])("are rejected once their agent %s", async (_, now) => {
    const token = await issue();
    expect(await workers.authenticate(token)).toMatchObject({ agentId: "agt_1" });
    agent = now;
    await expect(workers.authenticate(token)).rejects.toMatchObject({ code: "invalid_credential" });
  });

  test("end with the identity of their node: when it is deleted, moved, or enrolled again", async () => {
    const token = await issue();
    for (const found of [
      null,
      { projectId: "prj_2", signingKeyThumbprint: "thumb" },
      { projectId: "prj_1", signingKeyThumbprint: "newer" },
    ]) {
      node = found;
      await expect(workers.authenticate(token)).rejects.toMatchObject({ code: "invalid_credential" });
    }
  });

  test("end when their project is being deleted, even while the node waits for its last calls", async () => {
    const token = await issue();
    node = { projectId: "prj_1", signingKeyThumbprint: "thumb", projectDeleting: true };
    await expect(workers.authenticate(token)).rejects.toMatchObject({ code: "invalid_credential" });
  });

  test("expire", async () => {
    const token = await issue();
    clock.advance(3_661_000);
    await expect(workers.authenticate(token)).rejects.toMatchObject({ code: "expired_credential" });
  });

  test("do not include session and node tokens, which are directed to the platform host", async () => {
    const session = await tokens.issueSession({ userId: "usr_1", sessionId: "sis_1", ttlSeconds: 60 });
    const identity = { nodeId: "nod_1", projectId: "prj_1", keyThumbprint: "thumb", ttlSeconds: 60 };
    for (const token of [session, await tokens.issueNodeIdentity(identity)]) {
      await expect(workers.authenticate(token)).rejects.toThrow(/https:\/\/fairlead\.example\.org/);
    }
    for (const text of ["a.b.c", "..", "eyJhbGciOiJub25lIn0.e30."]) {
      await expect(workers.authenticate(text)).rejects.toMatchObject({ code: "invalid_credential" });
    }
  });
});
