import { describe, expect, test } from "vitest";
import type { OpenStore } from "../../../testing.fixture.ts";
import { KeyRingStore, type SigningKeyRecord } from "./key-ring-store.ts";

function record(id: string, createdAt: number): SigningKeyRecord {
  return {
    id,
    publicJwk: { kty: "OKP", crv: "Ed25519", x: "x", kid: id, alg: "EdDSA", use: "sig" },
    sealedJwk: `sealed ${id}`,
    masterKeyId: "k1",
    createdAt,
    retiredAt: createdAt === 1 ? 10 : null,
  };
}

export function keyRingStoreContract(name: string, open: OpenStore): void {
  describe(`the key ring store on ${name}`, () => {
    test("returns what was stored, newest first", async () => {
      const store = await open();
      const keys = new KeyRingStore(store.db);
      expect(await keys.list()).toEqual([]);
      await keys.insert(record("sgk_1", 1));
      await keys.insert(record("sgk_3", 3));
      await keys.insert(record("sgk_2", 2));
      expect(await keys.list()).toEqual([record("sgk_3", 3), record("sgk_2", 2), record("sgk_1", 1)]);
      await store.close();
    });

    test("retires the signing keys, and deletes keys that were retired long ago", async () => {
      const store = await open();
      const keys = new KeyRingStore(store.db);
      await keys.insert(record("sgk_1", 1));
      await keys.insert(record("sgk_2", 2));
      await keys.retireAll(20);
      expect((await keys.list()).map(({ retiredAt }) => retiredAt)).toEqual([20, 10]);
      await keys.deleteRetiredBefore(20);
      expect((await keys.list()).map(({ id }) => id)).toEqual(["sgk_2"]);
      await store.close();
    });
  });
}
