import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { OpenedDatabase } from "../../installation/db/open.ts";
import { insertProject, insertUser, type OpenStore } from "../../testing.fixture.ts";
import { NO_CALL_LIMITS } from "./call-limits.ts";
import { LimitStore } from "./limit-store.ts";

export function limitStoreContract(name: string, open: OpenStore): void {
  describe(`the limit store on ${name}`, () => {
    let store: OpenedDatabase;
    let limits: LimitStore;
    const some = { requestsPerMinute: 1, tokensPerMinute: 1_000_000_000, parallelCalls: null };

    beforeEach(async () => {
      store = await open();
      limits = new LimitStore(store.db);
      await insertUser(store, "usr_1");
      await insertProject(store, "prj_1", "usr_1");
      await insertProject(store, "prj_2", "usr_1");
    });
    afterEach(() => store.close());

    test("finds no limits if none were set", async () => {
      expect(await limits.find("prj_1")).toEqual(NO_CALL_LIMITS);
      expect(await limits.findForUpdate("prj_1")).toEqual(NO_CALL_LIMITS);
    });

    test("returns what was set, only in its own project", async () => {
      for (const id of ["prj_1", "prj_2"]) await limits.findForUpdate(id);
      await limits.set("prj_1", some);
      expect(await limits.find("prj_1")).toEqual(some);
      expect(await limits.findForUpdate("prj_1")).toEqual(some);
      expect(await limits.find("prj_2")).toEqual(NO_CALL_LIMITS);
    });

    test("keeps nothing of a rolled-back change or of a deleted project", async () => {
      const broken = limits.transaction(async (own) => {
        await own.findForUpdate("prj_1");
        await own.set("prj_1", some);
        throw new Error("the process died");
      });
      await expect(broken).rejects.toThrow("the process died");
      expect(await limits.find("prj_1")).toEqual(NO_CALL_LIMITS);
      await limits.findForUpdate("prj_2");
      await store.db.deleteFrom("project").where("id", "=", "prj_2").execute();
      expect(await store.db.selectFrom("project_limits").select("project_id").execute()).toEqual([]);
    });
  });
}
