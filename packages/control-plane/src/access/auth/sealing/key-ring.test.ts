import { CLOCK_SKEW_SECONDS } from "@fairlead/protocol/enrollment";
import { countingIds, TestClock } from "@fairlead/protocol/testing/test-clock";
import { decodeProtectedHeader } from "jose";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { OpenedDatabase } from "../../../installation/db/open.ts";
import { MAX_TOKEN_TTL_SECONDS } from "../../../people/users/user-service.ts";
import { openMemoryStore, STORES } from "../../../testing.fixture.ts";
import { TokenService } from "../tokens/tokens.ts";
import { keyRingStoreContract } from "./key-ring.contract.ts";
import { type KeyRing, openKeyRing, RETIRED_KEY_MS } from "./key-ring.ts";
import { KeyRingStore } from "./key-ring-store.ts";
import { memorySealer } from "./memory-sealer.ts";

for (const { name, open } of STORES) keyRingStoreContract(name, open);

describe("the key ring", () => {
  const clock = new TestClock();
  const ids = countingIds();
  let opened: OpenedDatabase;
  let sealer: ReturnType<typeof memorySealer>;
  const open = (): Promise<KeyRing> => openKeyRing({ store: new KeyRingStore(opened.db), sealer, clock, ids });
  const tokensOf = (keyRing: KeyRing): TokenService => new TokenService({ keyRing, installationId: "ins_1", clock });

  beforeEach(async () => {
    opened = await openMemoryStore();
    sealer = memorySealer();
  });
  afterEach(() => opened.close());

  test("creates one key in a new store and finds it again", async () => {
    const first = await open();
    const again = await open();
    expect(again.signing.keyId).toBe(first.signing.keyId);
    expect(again.publicJwks()).toEqual(first.publicJwks());
    expect(first.publicJwks().keys).toHaveLength(1);
  });

  test("publishes no private part, and stores none in plain text", async () => {
    const ring = await open();
    expect(Object.keys(ring.publicJwks().keys[0] ?? {}).toSorted()).toEqual(["alg", "crv", "kid", "kty", "use", "x"]);
    const row = await opened.db.selectFrom("signing_key").selectAll().executeTakeFirstOrThrow();
    expect(JSON.stringify(row)).not.toContain('\\"d\\"');
  });

  test("signs with the new key after a rotation, and verifies the old one's tokens until they expire", async () => {
    const ring = await open();
    const tokens = tokensOf(ring);
    const monthLong = { userId: "usr_1", sessionId: "sis_1", ttlSeconds: MAX_TOKEN_TTL_SECONDS };
    const before = await tokens.issueSession(monthLong);
    const old = ring.signing.keyId;
    const id = await ring.rotate();
    expect(id).not.toBe(old);
    expect(ring.signing.keyId).toBe(id);
    expect(ring.publicJwks().keys.map(({ kid }) => kid)).toEqual([id, old]);
    const after = await tokens.issueSession({ ...monthLong, ttlSeconds: 1 });
    expect(decodeProtectedHeader(after).kid).toBe(id);
    await expect(tokens.verify(after)).resolves.toMatchObject({ userId: "usr_1" });
    clock.advance(MAX_TOKEN_TTL_SECONDS * 1000 - 1);
    await expect(tokens.verify(before)).resolves.toMatchObject({ userId: "usr_1" });
    clock.advance(CLOCK_SKEW_SECONDS * 1000 + 1);
    expect(ring.publicJwks().keys.map(({ kid }) => kid)).toEqual([id]);
    await expect(tokens.verify(before)).rejects.toMatchObject({ code: "invalid_credential" });
  });

  test("keeps a rotation across a restart", async () => {
    const ring = await open();
    const token = await tokensOf(ring).issueSession({ userId: "usr_1", sessionId: "sis_1", ttlSeconds: 600 });
    await ring.rotate();
    const again = await open();
    expect(again.signing.keyId).toBe(ring.signing.keyId);
    expect(again.publicJwks()).toEqual(ring.publicJwks());
    await expect(tokensOf(again).verify(token)).resolves.toMatchObject({ userId: "usr_1" });
  });

  test("runs simultaneous rotations one after the other, and only one key signs", async () => {
    const ring = await open();
    const ids = await Promise.all([ring.rotate(), ring.rotate()]);
    expect(ring.signing.keyId).toBe(ids[1]);
    const signing = await opened.db.selectFrom("signing_key").select("id").where("retired_at", "is", null).execute();
    expect(signing).toEqual([{ id: ids[1] }]);
    expect(ring.publicJwks().keys).toHaveLength(3);
  });

  test("removes leaked keys immediately, and does not verify with them after a restart either", async () => {
    const ring = await open();
    await ring.rotate();
    const id = await ring.rotate({ forgetFormer: true });
    expect(ring.publicJwks().keys.map(({ kid }) => kid)).toEqual([id]);
    expect((await open()).publicJwks().keys.map(({ kid }) => kid)).toEqual([id]);
  });

  test("does not change if a rotation cannot be recorded", async () => {
    const ring = await open();
    const old = ring.signing.keyId;
    const alongside = async (): Promise<void> => {
      throw new Error("the record");
    };
    const failed = ring.rotate({ alongside, forgetFormer: true });
    await expect(failed).rejects.toThrow("the record");
    expect(ring.signing.keyId).toBe(old);
    expect((await open()).signing.keyId).toBe(old);
    expect(await ring.rotate()).toBe(ring.signing.keyId);
  });

  test("deletes keys that were retired long ago at the next rotation", async () => {
    const ring = await open();
    await ring.rotate();
    clock.advance(RETIRED_KEY_MS + 1);
    await ring.rotate();
    expect(await opened.db.selectFrom("signing_key").select("id").execute()).toHaveLength(2);
  });

  test("returns the same object as its published set until a key is added or removed", async () => {
    const ring = await open();
    const published = ring.publicJwks();
    expect(ring.publicJwks()).toBe(published);
    await ring.rotate();
    expect(ring.publicJwks()).not.toBe(published);
    expect(ring.publicJwks()).toBe(ring.publicJwks());
  });

  test("does not open with another master key, and says which one it needs", async () => {
    await open();
    sealer = memorySealer("other");
    await expect(open()).rejects.toThrow(/sealed with the master key memory.*configured master key is other/s);
  });
});
