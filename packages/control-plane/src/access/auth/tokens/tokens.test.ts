import { countingIds, TestClock } from "@fairlead/protocol/testing/test-clock";
import { generateKeyPair, SignJWT } from "jose";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { OpenedDatabase } from "../../../installation/db/open.ts";
import { openMemoryStore } from "../../../testing.fixture.ts";
import { type KeyRing, openKeyRing } from "../sealing/key-ring.ts";
import { KeyRingStore } from "../sealing/key-ring-store.ts";
import { memorySealer } from "../sealing/memory-sealer.ts";
import { TokenService } from "./tokens.ts";

describe("tokens", () => {
  let store: OpenedDatabase;
  let keyRing: KeyRing;
  let clock: TestClock;
  let tokens: TokenService;

  beforeAll(async () => {
    store = await openMemoryStore();
    keyRing = await openKeyRing({
      store: new KeyRingStore(store.db),
      sealer: memorySealer(),
      clock: new TestClock(),
      ids: countingIds(),
    });
  });
  afterAll(() => store.close());
  beforeEach(() => {
    clock = new TestClock();
    tokens = new TokenService({ keyRing, installationId: "ins_1", clock });
  });

  const session = { userId: "usr_1", sessionId: "sis_1", ttlSeconds: 600 };
  const identity = { nodeId: "nod_1", projectId: "prj_1", keyThumbprint: "t", ttlSeconds: 600 };
  const sign = (claims: Record<string, unknown>, issuer = "ins_1"): Promise<string> => {
    const now = Math.floor(clock.now() / 1000);
    return new SignJWT(claims)
      .setProtectedHeader({ alg: "EdDSA", kid: keyRing.signing.keyId })
      .setIssuer(issuer)
      .setIssuedAt(now)
      .setExpirationTime(now + 600)
      .sign(keyRing.signing.privateKey);
  };

  test("verify to the claims they were issued with", async () => {
    expect(await tokens.verify(await tokens.issueSession(session))).toEqual({
      audience: "platform",
      userId: "usr_1",
      sessionId: "sis_1",
    });
    expect(await tokens.verify(await tokens.issueNodeIdentity(identity))).toEqual({
      audience: "node",
      nodeId: "nod_1",
      projectId: "prj_1",
      keyThumbprint: "t",
    });
    const worker = { agentId: "agt_1", run: 3, ...identity };
    expect(await tokens.verify(await tokens.issueWorker(worker))).toEqual({
      audience: "inference",
      agentId: "agt_1",
      nodeId: "nod_1",
      projectId: "prj_1",
      keyThumbprint: "t",
      run: 3,
    });
  });

  test("are valid until their end plus 60 s of clock skew, and then expired, not invalid", async () => {
    const token = await tokens.issueSession(session);
    clock.advance(659_000);
    await expect(tokens.verify(token)).resolves.toMatchObject({ userId: "usr_1" });
    clock.advance(2000);
    await expect(tokens.verify(token)).rejects.toMatchObject({ code: "expired_credential" });
  });

  test("are valid if the verifier's clock is behind the issuer (dgrijalva/jwt-go#226, lcobucci/jwt#191)", async () => {
    for (const behindMs of [1000, 3_600_000]) {
      const token = await tokens.issueSession(session);
      clock.advance(-behindMs);
      await expect(tokens.verify(token)).resolves.toMatchObject({ userId: "usr_1" });
    }
  });

  test.each(["", "x", "a.b.c", "eyJhbGciOiJub25lIn0.e30."])("do not include %j", async (text) => {
    await expect(tokens.verify(text)).rejects.toMatchObject({ code: "invalid_credential" });
  });

  test("of another installation, audience or shape are invalid", async () => {
    const others = [
      await sign({ aud: "platform", sub: "usr_1", sid: "sis_1" }, "ins_2"),
      await sign({ aud: "inference", sub: "usr_1", sid: "sis_1" }),
      await sign({ aud: "platform", sub: "usr_1" }),
      await sign({ aud: ["platform", "node"], sub: "usr_1", sid: "sis_1" }),
    ];
    for (const token of others) {
      await expect(tokens.verify(token)).rejects.toMatchObject({ code: "invalid_credential" });
    }
  });

  test("signed with a key outside the ring are invalid, whatever key they name", async () => {
    const { privateKey } = await generateKeyPair("EdDSA");
    for (const kid of [keyRing.signing.keyId, "sgk_unknown"]) {
      const forged = await new SignJWT({ aud: "platform", sub: "usr_1", sid: "sis_1" })
        .setProtectedHeader({ alg: "EdDSA", kid })
        .setIssuer("ins_1")
        .setIssuedAt(Math.floor(clock.now() / 1000))
        .setExpirationTime("1y")
        .sign(privateKey);
      await expect(tokens.verify(forged)).rejects.toMatchObject({ code: "invalid_credential" });
    }
  });

  test("without an expiry are invalid", async () => {
    const endless = await new SignJWT({ aud: "platform", sub: "usr_1", sid: "sis_1" })
      .setProtectedHeader({ alg: "EdDSA", kid: keyRing.signing.keyId })
      .setIssuer("ins_1")
      .setIssuedAt(Math.floor(clock.now() / 1000))
      .sign(keyRing.signing.privateKey);
    await expect(tokens.verify(endless)).rejects.toMatchObject({ code: "invalid_credential" });
  });

  test("with any part changed are invalid", async () => {
    const parts = (await tokens.issueSession(session)).split(".");
    const changed = parts.map((_, i) =>
      parts.map((part, j) => (i === j ? part.replace(/^.../, "abc") : part)).join("."),
    );
    for (const token of changed) {
      await expect(tokens.verify(token)).rejects.toMatchObject({ code: "invalid_credential" });
    }
  });
});
