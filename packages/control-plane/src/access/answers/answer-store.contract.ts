import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { OpenedDatabase } from "../../installation/db/open.ts";
import { insertProject, insertUser, type OpenStore } from "../../testing.fixture.ts";
import { AnswerStore } from "./answer-store.ts";

export function answerStoreContract(name: string, open: OpenStore): void {
  describe(`the answer store on ${name}`, () => {
    let store: OpenedDatabase;
    let answers: AnswerStore;
    const call = { projectId: "prj_1", callerId: "key_1", key: `a "quoted" key; drop table kept_answer --` };
    const record = { fingerprint: "f", sealed: "s".repeat(1_500_000), expiresAt: 100 };
    beforeEach(async () => {
      store = await open();
      answers = new AnswerStore(store.db);
      await insertUser(store, "usr_1");
      for (const id of ["prj_1", "prj_2"]) await insertProject(store, id, "usr_1");
    });
    afterEach(() => store.close());
    test("returns a stored response until it expires", async () => {
      expect(await answers.find(call, 1)).toBeNull();
      await answers.put(call, record);
      expect(await answers.find(call, 99)).toEqual(record);
      expect(await answers.find(call, 100)).toBeNull();
    });
    test("separates calls of different projects, callers and keys", async () => {
      await answers.put(call, record);
      for (const other of [{ projectId: "prj_2" }, { callerId: "key_2" }, { key: "A" }]) {
        expect(await answers.find({ ...call, ...other }, 1)).toBeNull();
      }
    });
    test("replaces an expired response", async () => {
      await answers.put(call, record);
      await answers.put(call, { fingerprint: "g", sealed: null, expiresAt: 200 });
      expect(await answers.find(call, 150)).toEqual({ fingerprint: "g", sealed: null, expiresAt: 200 });
    });
    test("deletes expired responses in batches, and those of a deleted project", async () => {
      for (const key of ["a", "b", "c"]) await answers.put({ ...call, key }, record);
      await answers.put({ ...call, projectId: "prj_2" }, { ...record, expiresAt: 101 });
      expect(await answers.deleteExpired(99, 2)).toBe(0);
      expect(await answers.deleteExpired(100, 2)).toBe(2);
      expect(await answers.deleteExpired(100, 2)).toBe(1);
      await store.db.deleteFrom("project").where("id", "=", "prj_2").execute();
      expect(await store.db.selectFrom("kept_answer").select("key").execute()).toEqual([]);
    });
  });
}
