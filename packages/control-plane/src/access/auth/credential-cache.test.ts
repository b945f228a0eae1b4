import { countingIds, TestClock } from "@fairlead/protocol/testing/test-clock";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { OpenedDatabase } from "../../installation/db/open.ts";
import { openMemoryStore } from "../../testing.fixture.ts";
import { VerifiedTokens } from "./credential-cache.ts";
import { type KeyRing, openKeyRing, RETIRED_KEY_MS } from "./sealing/key-ring.ts";
import { KeyRingStore } from "./sealing/key-ring-store.ts";
import { memorySealer } from "./sealing/memory-sealer.ts";
import { TokenService, type VerifiedToken } from "./tokens/tokens.ts";

describe("verified tokens", () => {
  const clock = new TestClock();
  let store: OpenedDatabase;
  let keyRing: KeyRing;
  let tokens: TokenService;
  let checks: number;
  let verified: VerifiedTokens;

  beforeAll(async () => {
    store = await openMemoryStore();
    keyRing = await openKeyRing({
      store: new KeyRingStore(store.db),
      sealer: memorySealer(),
      clock,
      ids: countingIds(),
    });
    tokens = new TokenService({ keyRing, installationId: "ins_1", clock });
  });
  afterAll(() => store.close());
  beforeEach(() => {
    checks = 0;
    const check = (token: string): Promise<VerifiedToken> => {
      checks += 1;
      return tokens.check(token);
    };
    verified = new VerifiedTokens({ tokens: { check }, keyRing, clock });
  });

  const issue = (): Promise<string> => tokens.issueSession({ userId: "usr_1", sessionId: "sis_1", ttlSeconds: 600 });
  const claims = { audience: "platform", userId: "usr_1", sessionId: "sis_1" };

  test("are checked once, even by simultaneous calls, and are then returned synchronously", async () => {
    const token = await issue();
    expect(await Promise.all([verified.verify(token), verified.verify(token)])).toEqual([claims, claims]);
    expect(verified.verify(token)).toEqual(claims);
    expect(checks).toBe(1);
  });

  test("expire exactly when uncached ones do: at their end plus 60 s of clock skew", async () => {
    const token = await issue();
    await verified.verify(token);
    clock.advance(659_000);
    expect(verified.verify(token)).toEqual(claims);
    clock.advance(1000);
    await expect(verified.verify(token)).rejects.toMatchObject({ code: "expired_credential" });
    await expect(tokens.verify(token)).rejects.toMatchObject({ code: "expired_credential" });
  });

  test("are cached only if valid, and a token that differs in any byte is a different token", async () => {
    const token = await issue();
    await verified.verify(token);
    for (const other of [`${token}x`, token.slice(0, -1), token.replace(".", "..")]) {
      await expect(verified.verify(other)).rejects.toMatchObject({ code: "invalid_credential" });
      await expect(verified.verify(other)).rejects.toMatchObject({ code: "invalid_credential" });
    }
    expect(checks).toBe(7);
  });

  test("are checked again after the key ring changes; a token whose key was removed is rejected", async () => {
    const before = await issue();
    await verified.verify(before);
    await keyRing.rotate();
    expect(verified.verify(before)).toBeInstanceOf(Promise);
    const long = await tokens.issueSession({ userId: "usr_1", sessionId: "sis_1", ttlSeconds: 2 * 30 * 24 * 3600 });
    await keyRing.rotate();
    expect(await verified.verify(long)).toEqual(claims);
    clock.advance(RETIRED_KEY_MS);
    await expect(verified.verify(long)).rejects.toMatchObject({ code: "invalid_credential" });
  });
});
