import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { OpenedDatabase } from "../db/open.ts";
import { countingIds, openMemoryStore, TestClock } from "../testing.fixture.ts";
import type { NodeIdentities } from "./authenticate.ts";
import { openKeyRing } from "./key-ring.ts";
import { KeyRingStore } from "./key-ring-store.ts";
import { memorySealer } from "./memory-sealer.ts";
import { TokenService } from "./tokens.ts";
import { WorkerTokens } from "./worker-token.ts";

describe("worker-plane tokens", () => {
  const clock = new TestClock();
  const worker = { subjectId: "agt_1", nodeId: "nod_1", projectId: "prj_1" } as const;
  let store: OpenedDatabase;
  let tokens: TokenService;
  let node: Awaited<ReturnType<NodeIdentities["find"]>>;
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
    workers = new WorkerTokens({ tokens, verified: tokens, nodes, publicUrl: "https://fairlead.example.org" });
  });
  afterAll(() => store.close());
  beforeEach(() => {
    node = { projectId: "prj_1", signingKeyThumbprint: "thumb" };
  });

  test("name their workload or agent, node and project", async () => {
    const { token, expiresIn } = await workers.issue(worker);
    expect(expiresIn).toBe(3600);
    expect(await workers.authenticate(token)).toEqual({ kind: "worker", ...worker });
  });

  test("are issued for an enrolled node of the project alone", async () => {
    for (const found of [null, { projectId: "prj_2", signingKeyThumbprint: "thumb" }]) {
      node = found;
      await expect(workers.issue(worker)).rejects.toMatchObject({ code: "not_found" });
    }
  });

  test("end with the identity of their node: deleted, moved, or enrolled anew", async () => {
    const { token } = await workers.issue(worker);
    for (const found of [
      null,
      { projectId: "prj_2", signingKeyThumbprint: "thumb" },
      { projectId: "prj_1", signingKeyThumbprint: "newer" },
    ]) {
      node = found;
      await expect(workers.authenticate(token)).rejects.toMatchObject({ code: "invalid_credential" });
    }
  });

  test("end with their project, while the node still waits for its last calls", async () => {
    const { token } = await workers.issue(worker);
    node = { projectId: "prj_1", signingKeyThumbprint: "thumb", projectDeleting: true };
    await expect(workers.authenticate(token)).rejects.toMatchObject({ code: "invalid_credential" });
  });

  test("run out", async () => {
    const { token } = await workers.issue(worker);
    clock.advance(3_661_000);
    await expect(workers.authenticate(token)).rejects.toMatchObject({ code: "expired_credential" });
  });

  test("are no other tokens: those of sessions and nodes are told where they belong", async () => {
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
