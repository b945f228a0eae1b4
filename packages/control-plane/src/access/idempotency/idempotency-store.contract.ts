import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { OpenedDatabase } from "../../installation/db/open.ts";
import type { OpenStore } from "../../testing.fixture.ts";
import { IdempotencyStore } from "./idempotency-store.ts";

export function idempotencyStoreContract(name: string, open: OpenStore): void {
  describe(`the idempotency store on ${name}`, () => {
    let store: OpenedDatabase;
    let records: IdempotencyStore;
    const call = { userId: "usr_1", projectId: "prj_1", route: "POST /v1/things", key: "k" };
    const taken = { fingerprint: "f", expiresAt: 100 };

    beforeEach(async () => {
      store = await open();
      records = new IdempotencyStore(store.db);
    });
    afterEach(() => store.close());

    test("claims a key once, and stores the response", async () => {
      expect(await records.find(call)).toBeNull();
      expect(await records.claim(call, taken, 1)).toBe(true);
      await records.keep(call, { resourceId: "thg_1", answer: '{"ä":1}' });
      expect(await records.claim(call, { fingerprint: "g", expiresAt: 200 }, 99)).toBe(false);
      expect(await records.find(call)).toEqual({ ...taken, resourceId: "thg_1", answer: '{"ä":1}' });
    });

    test("separates users, projects, routes and keys", async () => {
      await records.claim(call, taken, 1);
      for (const other of [{ userId: "usr_2" }, { projectId: "" }, { route: "POST /v1/others" }, { key: "K" }]) {
        expect(await records.claim({ ...call, ...other }, taken, 1)).toBe(true);
      }
    });

    test("claims a key again after it expires, without the old response", async () => {
      await records.claim(call, taken, 1);
      await records.keep(call, { resourceId: "thg_1", answer: "{}" });
      expect(await records.claim(call, { fingerprint: "g", expiresAt: 200 }, 100)).toBe(true);
      expect(await records.find(call)).toEqual({ fingerprint: "g", expiresAt: 200, resourceId: "", answer: null });
    });

    test("deletes expired records, a limited number at a time", async () => {
      for (const key of ["a", "b", "c"]) await records.claim({ ...call, key }, taken, 1);
      await records.claim(call, { fingerprint: "f", expiresAt: 101 }, 1);
      expect(await records.deleteExpired(99, 2)).toBe(0);
      expect(await records.deleteExpired(100, 2)).toBe(2);
      expect(await records.deleteExpired(100, 2)).toBe(1);
      expect(await records.find(call)).not.toBeNull();
    });
  });
}
