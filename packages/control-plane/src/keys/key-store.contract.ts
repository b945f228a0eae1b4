import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { isUniqueViolation } from "../db/errors.ts";
import type { OpenedDatabase } from "../db/open.ts";
import { insertProject, insertUser, type OpenStore } from "../testing.fixture.ts";
import type { KeyRecord } from "./key.ts";
import { KeyStore } from "./key-store.ts";

export function keyStoreContract(name: string, open: OpenStore): void {
  describe(`the key store on ${name}`, () => {
    let store: OpenedDatabase;
    let keys: KeyStore;
    const record: KeyRecord = {
      id: "key_1",
      projectId: "prj_1",
      userId: "usr_1",
      name: "näme",
      publicId: "pub1",
      secretHash: "hash1",
      enabled: true,
      expiresAt: null,
      createdAt: 1,
    };

    beforeEach(async () => {
      store = await open();
      keys = new KeyStore(store.db);
      await insertUser(store, "usr_1");
      await insertProject(store, "prj_1", "usr_1");
    });
    afterEach(() => store.close());

    test("finds a key by its hash, as it was put in", async () => {
      const other = { ...record, id: "key_2", publicId: "pub2", secretHash: "hash2", enabled: false, expiresAt: 9e12 };
      await keys.insert(record);
      await keys.insert(other);
      expect(await keys.findByHash("hash1")).toEqual(record);
      expect(await keys.findByHash("hash2")).toEqual(other);
      expect(await keys.findByHash("hash3")).toBeNull();
    });

    test("disables the enabled keys of one user in one project, or of the whole project", async () => {
      await insertProject(store, "prj_2", "usr_1");
      const add = (n: number, change: Partial<KeyRecord>): Promise<void> =>
        keys.insert({ ...record, id: `key_${n}`, publicId: `pub${n}`, secretHash: `hash${n}`, ...change });
      await add(1, {});
      await add(2, { enabled: false });
      await add(3, { userId: "usr_2" });
      await add(4, { projectId: "prj_2" });
      expect(await keys.disable("prj_1", "usr_1")).toEqual(["key_1"]);
      expect(await keys.disable("prj_1", "usr_1")).toEqual([]);
      expect((await keys.findByHash("hash1"))?.enabled).toBe(false);
      expect(await keys.disable("prj_1", null)).toEqual(["key_3"]);
      expect((await keys.findByHash("hash4"))?.enabled).toBe(true);
    });

    test("refuses a second key with the same hash or public id", async () => {
      await keys.insert(record);
      for (const same of [{ publicId: "pub1" }, { secretHash: "hash1" }]) {
        const again = { ...record, id: "key_2", publicId: "pub2", secretHash: "hash2", ...same };
        await expect(keys.insert(again)).rejects.toSatisfy(isUniqueViolation);
      }
    });

    test("keeps no key of a project that is gone", async () => {
      await keys.insert(record);
      await store.db.deleteFrom("project").execute();
      expect(await keys.findByHash("hash1")).toBeNull();
    });
  });
}
