import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { OpenedDatabase } from "../db/open.ts";
import { countingIds, openMemoryStore, STORES, TestClock } from "../testing.fixture.ts";
import { keyRingStoreContract } from "./key-ring.contract.ts";
import { type KeyRing, openKeyRing } from "./key-ring.ts";
import { KeyRingStore } from "./key-ring-store.ts";
import { memorySealer } from "./memory-sealer.ts";
import { TokenService } from "./tokens.ts";

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

  test("makes one key in a new store and finds it again", async () => {
    const first = await open();
    const again = await open();
    expect(again.signing.keyId).toBe(first.signing.keyId);
    expect(again.publicJwks()).toEqual(first.publicJwks());
    expect(first.publicJwks().keys).toHaveLength(1);
  });

  test("publishes no private part, and keeps none in the clear", async () => {
    const ring = await open();
    expect(Object.keys(ring.publicJwks().keys[0] ?? {}).toSorted()).toEqual(["alg", "crv", "kid", "kty", "use", "x"]);
    const row = await opened.db.selectFrom("signing_key").selectAll().executeTakeFirstOrThrow();
    expect(JSON.stringify(row)).not.toContain('\\"d\\"');
  });

  test("signs with the newest key, while tokens of an older one stay good", async () => {
    const old = await open();
    const token = await tokensOf(old).issueSession({ userId: "usr_1", sessionId: "sis_1", ttlSeconds: 600 });
    const spare = await openMemoryStore();
    clock.advance(1000);
    await openKeyRing({ store: new KeyRingStore(spare.db), sealer, clock, ids });
    const newer = await spare.db.selectFrom("signing_key").selectAll().executeTakeFirstOrThrow();
    await opened.db.insertInto("signing_key").values(newer).execute();
    await opened.db.updateTable("signing_key").set({ retired_at: clock.now() }).where("id", "!=", newer.id).execute();

    const rotated = await open();
    expect(rotated.signing.keyId).toBe(newer.id);
    expect(rotated.publicJwks().keys).toHaveLength(2);
    await expect(tokensOf(rotated).verify(token)).resolves.toMatchObject({ userId: "usr_1" });
    await spare.close();
  });

  test("does not open under another master key, and says which one it needs", async () => {
    await open();
    sealer = memorySealer("other");
    await expect(open()).rejects.toThrow(/sealed by the master key memory.*configured one is other/s);
  });
});
