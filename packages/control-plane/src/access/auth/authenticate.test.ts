import { countingIds, TestClock } from "@fairlead/protocol/testing/test-clock";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { OpenedDatabase } from "../../installation/db/open.ts";
import { openMemoryStore } from "../../testing.fixture.ts";
import { type Authenticate, createAuthenticate, type NodeIdentities, type SignInSessions } from "./authenticate.ts";
import { openKeyRing } from "./sealing/key-ring.ts";
import { KeyRingStore } from "./sealing/key-ring-store.ts";
import { memorySealer } from "./sealing/memory-sealer.ts";
import { TokenService } from "./tokens/tokens.ts";

describe("authenticate", () => {
  const clock = new TestClock();
  let store: OpenedDatabase;
  let tokens: TokenService;
  let session: Awaited<ReturnType<SignInSessions["find"]>>;
  let node: Awaited<ReturnType<NodeIdentities["find"]>>;
  let authenticate: Authenticate;
  let sessionToken: string;
  let nodeToken: string;

  beforeAll(async () => {
    store = await openMemoryStore();
    const keyRing = await openKeyRing({
      store: new KeyRingStore(store.db),
      sealer: memorySealer(),
      clock,
      ids: countingIds(),
    });
    tokens = new TokenService({ keyRing, installationId: "ins_1", clock });
    authenticate = createAuthenticate({
      tokens,
      sessions: { find: async () => session },
      nodes: { find: async () => node },
      modelsUrl: "https://models.example.org",
    });
    sessionToken = await tokens.issueSession({ userId: "usr_1", sessionId: "sis_1", ttlSeconds: 600 });
    nodeToken = await tokens.issueNodeIdentity({
      nodeId: "nod_1",
      projectId: "prj_1",
      keyThumbprint: "thumb",
      ttlSeconds: 600,
    });
  });
  afterAll(() => store.close());
  beforeEach(() => {
    session = { userId: "usr_1", platformAdmin: true };
    node = { projectId: "prj_1", signingKeyThumbprint: "thumb" };
  });

  const bearer = (token: string): string => `Bearer ${token}`;

  test("returns the user of a session token, and whether they are a platform administrator now", async () => {
    const user = { kind: "user", userId: "usr_1", platformAdmin: true, sessionId: "sis_1" };
    expect(await authenticate(bearer(sessionToken), ["user"])).toEqual(user);
    expect(await authenticate(`bearer   ${sessionToken} `, ["user", "node"])).toEqual(user);
  });

  test("returns the node of an identity token", async () => {
    const principal = { kind: "node", nodeId: "nod_1", projectId: "prj_1" };
    expect(await authenticate(bearer(nodeToken), ["user", "node"])).toEqual(principal);
  });

  test.each([undefined, "", "Bearer", "Bearer ", "Basic abc", "Bearer a b", "Bearer a\u0000b"])(
    "rejects %j as a credential, and says what to send",
    async (header) => {
      await expect(authenticate(header, ["user", "node"])).rejects.toMatchObject({
        code: "invalid_credential",
        message: "Send `Authorization: Bearer <session token or node identity token>`.",
      });
    },
  );

  test("names the accepted kind of credential when it gets another kind", async () => {
    await expect(authenticate(bearer(nodeToken), ["user"])).rejects.toThrow(
      "This call requires a session token, not a node identity token.",
    );
    await expect(authenticate(bearer(sessionToken), ["node"])).rejects.toMatchObject({ code: "invalid_credential" });
  });

  test("directs a project key to the inference host, and a bootstrap token to enrolment", async () => {
    await expect(authenticate(bearer("flk_whatever"), ["user"])).rejects.toThrow(/https:\/\/models\.example\.org/);
    await expect(authenticate(bearer("flb_whatever"), ["user", "node"])).rejects.toThrow(/\/v1\/nodes\/\{id\}\/enroll/);
  });

  test("directs a worker-plane token to the inference host", async () => {
    const node = { nodeId: "nod_1", projectId: "prj_1", keyThumbprint: "thumb", ttlSeconds: 60 };
    const token = await tokens.issueWorker({ ...node, agentId: "agt_1", run: 1 });
    await expect(authenticate(bearer(token), ["user", "node"])).rejects.toMatchObject({
      code: "invalid_credential",
      message: expect.stringContaining("https://models.example.org"),
    });
  });

  test("rejects a token whose session has ended or belongs to another user", async () => {
    session = null;
    await expect(authenticate(bearer(sessionToken), ["user"])).rejects.toMatchObject({ code: "invalid_credential" });
    session = { userId: "usr_2", platformAdmin: false };
    await expect(authenticate(bearer(sessionToken), ["user"])).rejects.toMatchObject({ code: "invalid_credential" });
  });

  test("rejects a node that was deleted, moved, or enrolled with another key", async () => {
    for (const found of [
      null,
      { projectId: "prj_2", signingKeyThumbprint: "thumb" },
      { projectId: "prj_1", signingKeyThumbprint: "newer" },
    ]) {
      node = found;
      await expect(authenticate(bearer(nodeToken), ["node"])).rejects.toMatchObject({ code: "invalid_credential" });
    }
  });
});
