import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { OpenedDatabase } from "../../installation/db/open.ts";
import { insertUser, type OpenStore } from "../../testing.fixture.ts";
import type { AuditEventRecord } from "./audit.ts";
import { type AuditFilter, AuditStore } from "./audit-store.ts";

export function auditStoreContract(name: string, open: OpenStore): void {
  describe(`the audit store on ${name}`, () => {
    let store: OpenedDatabase;
    let audit: AuditStore;
    const record = (id: string, changes: Partial<AuditEventRecord> = {}): AuditEventRecord => ({
      id,
      at: 1000,
      action: "key.create",
      actor: { type: "user", id: "usr_a", email: "usr_a@example.org" },
      projectId: "prj_1",
      resource: { type: "key", id: "key_1", name: "näme '); drop table audit_event; --" },
      address: "2001:db8::1",
      requestId: "req_1",
      detail: { expires: null, enabled: true, limit: 9e15, note: 'a "quoted" <b>text</b> 🔑' },
      ...changes,
    });
    const ids = async (filter: AuditFilter, after: string | null = null, limit = 10): Promise<string[]> =>
      (await audit.listAll(filter, { after, limit })).map(({ id }) => id);

    beforeEach(async () => {
      store = await open();
      audit = new AuditStore(store.db);
      await insertUser(store, "usr_a");
    });
    afterEach(() => store.close());

    test("returns what was stored", async () => {
      await audit.append(record("aud_1"));
      expect(await audit.list("prj_1", {}, { after: null, limit: 10 })).toEqual([record("aud_1")]);
    });

    test("keeps a user's email address as it was, even after the user is deleted", async () => {
      await audit.append(record("aud_1"));
      await store.db.updateTable("user").set({ email: "other@example.org" }).execute();
      await audit.append(record("aud_2"));
      await store.db.deleteFrom("user").execute();
      await audit.append(record("aud_3"));
      const listed = await audit.listAll({}, { after: null, limit: 10 });
      expect(listed.map(({ actor }) => actor.email)).toEqual([null, "other@example.org", "usr_a@example.org"]);
    });

    test("records no email address for nodes and system actors", async () => {
      await audit.append(record("aud_1", { actor: { type: "system", id: "usr_a", email: null } }));
      expect((await audit.listAll({}, { after: null, limit: 1 }))[0]?.actor).toEqual({
        type: "system",
        id: "usr_a",
        email: null,
      });
    });

    test("lists only the project's events, page by page, newest first", async () => {
      for (const id of ["aud_2", "aud_4", "aud_1"]) await audit.append(record(id));
      await audit.append(record("aud_3", { projectId: "prj_2" }));
      await audit.append(record("aud_5", { projectId: null }));
      const page = async (after: string | null): Promise<string[]> =>
        (await audit.list("prj_1", {}, { after, limit: 2 })).map(({ id }) => id);
      expect(await page(null)).toEqual(["aud_4", "aud_2"]);
      expect(await page("aud_2")).toEqual(["aud_1"]);
      expect(await page("aud_1")).toEqual([]);
      expect(await ids({})).toEqual(["aud_5", "aud_4", "aud_3", "aud_2", "aud_1"]);
    });

    test("does not let a filter widen a project's list", async () => {
      await audit.append(record("aud_1", { projectId: "prj_2" }));
      expect(await audit.list("prj_1", { projectId: "prj_2" }, { after: null, limit: 10 })).toEqual([]);
    });

    test("filters by action, actor and time in combination", async () => {
      await audit.append(record("aud_1", { at: 1000 }));
      await audit.append(record("aud_2", { at: 2000, action: "node.delete" }));
      await audit.append(record("aud_3", { at: 3000, actor: { type: "node", id: "nod_1", email: null } }));
      await audit.append(record("aud_4", { at: 4000 }));
      expect(await ids({ action: "key.create" })).toEqual(["aud_4", "aud_3", "aud_1"]);
      expect(await ids({ actorId: "usr_a" })).toEqual(["aud_4", "aud_2", "aud_1"]);
      expect(await ids({ from: 2000, to: 4000 })).toEqual(["aud_3", "aud_2"]);
      expect(await ids({ action: "key.create", actorId: "usr_a", from: 1001 })).toEqual(["aud_4"]);
      expect(await ids({ actorId: "' or 1=1 --" })).toEqual([]);
    });

    test("deletes a limited number of events from before a given time", async () => {
      for (const at of [1, 2, 3]) await audit.append(record(`aud_${at}`, { at }));
      expect(await audit.deleteBefore(3, 1)).toBe(1);
      expect(await audit.deleteBefore(3, 10)).toBe(1);
      expect(await ids({})).toEqual(["aud_3"]);
    });

    test("stores no event when the transaction fails", async () => {
      const work = store.db.transaction().execute(async (transaction) => {
        await new AuditStore(transaction).append(record("aud_1"));
        throw new Error("undone");
      });
      await expect(work).rejects.toThrow("undone");
      expect(await ids({})).toEqual([]);
    });
  });
}
