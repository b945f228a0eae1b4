import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { OpenedDatabase } from "../../installation/db/open.ts";
import { insertProject, insertUser, type OpenStore } from "../../testing.fixture.ts";
import type { OneTimeLinkRecord } from "./one-time-link.ts";
import { OneTimeLinkStore } from "./one-time-link-store.ts";

export function oneTimeLinkStoreContract(name: string, open: OpenStore): void {
  describe(`the one-time link store on ${name}`, () => {
    let store: OpenedDatabase;
    let links: OneTimeLinkStore;
    const invitation: OneTimeLinkRecord = {
      id: "otl_1",
      purpose: "invitation",
      email: "o'ne\"@exämple.org",
      userId: null,
      projectId: "prj_1",
      role: "viewer",
      createdBy: "usr_1",
      createdAt: 1,
      expiresAt: 9e12,
      usedBy: null,
      usedAt: null,
      revokedAt: null,
    };
    const reset: OneTimeLinkRecord = {
      ...invitation,
      id: "otl_9",
      purpose: "reset",
      email: null,
      userId: "usr_1",
      projectId: null,
      role: null,
      createdBy: null,
    };
    const all = { after: null, limit: 10 };

    beforeEach(async () => {
      store = await open();
      links = new OneTimeLinkStore(store.db);
      await insertUser(store, "usr_1");
      for (const id of ["prj_1", "prj_2"]) {
        await insertProject(store, id, "usr_1");
      }
    });
    afterEach(() => store.close());

    test("finds a link by its token's hash, as it was stored", async () => {
      await links.replace(invitation, "h1");
      await links.replace(reset, "h2");
      expect(await links.findByHash("h1")).toEqual(invitation);
      expect(await links.findByHash("h2")).toEqual(reset);
      expect(await links.findByHash("h3")).toBeNull();
    });

    test("keeps one link for a subject: the last", async () => {
      await links.replace(invitation, "h1");
      await links.replace({ ...invitation, id: "otl_2", email: "two@example.org" }, "h2");
      await links.replace({ ...invitation, id: "otl_3", projectId: "prj_2" }, "h3");
      await links.spend("h1", "usr_1", 5);
      const newer = { ...invitation, id: "otl_4", role: "admin" as const, createdAt: 7 };
      await links.replace(newer, "h4");
      expect(await links.findByHash("h1")).toBeNull();
      expect(await links.findByHash("h4")).toEqual(newer);
      expect(await links.findByHash("h2")).not.toBeNull();
      expect(await links.findByHash("h3")).not.toBeNull();
    });

    test("keeps one link after simultaneous replacements", async () => {
      await Promise.all([1, 2, 3, 4].map((n) => links.replace({ ...invitation, id: `otl_${n}` }, `h${n}`)));
      expect(await links.listOpen("prj_1", 0, all)).toHaveLength(1);
    });

    test("lets a link be spent once, by the first caller", async () => {
      await links.replace(invitation, "h1");
      const spent = await Promise.all(["usr_a", "usr_b", "usr_c"].map((user) => links.spend("h1", user, 5)));
      const won = spent.filter((link) => link !== null);
      expect(won).toHaveLength(1);
      expect(await links.findByHash("h1")).toEqual({ ...invitation, usedBy: won[0]?.usedBy, usedAt: 5 });
    });

    test("does not let a revoked or expired link be spent", async () => {
      await links.replace({ ...invitation, expiresAt: 100 }, "h1");
      expect(await links.spend("h1", "usr_1", 100)).toBeNull();
      expect(await links.spend("unknown", "usr_1", 1)).toBeNull();
      await links.replace(invitation, "h2");
      expect(await links.revoke("prj_1", "otl_1", 6)).toEqual({ ...invitation, revokedAt: 6 });
      expect(await links.spend("h2", "usr_1", 7)).toBeNull();
      expect(await links.revoke("prj_1", "otl_1", 8)).toBeNull();
    });

    test("revokes the links of one project only", async () => {
      await links.replace(invitation, "h1");
      expect(await links.revoke("prj_2", "otl_1", 6)).toBeNull();
      expect(await links.spend("h1", "usr_1", 7)).not.toBeNull();
    });

    test("lists a project's open invitations page by page", async () => {
      const put = (n: number, change: Partial<OneTimeLinkRecord> = {}): Promise<void> =>
        links.replace({ ...invitation, id: `otl_${n}`, email: `${n}@example.org`, ...change }, `h${n}`);
      await put(3);
      await put(1);
      await put(2);
      await put(4, { expiresAt: 100 });
      await put(5, { projectId: "prj_2" });
      await put(6);
      await links.revoke("prj_1", "otl_6", 1);
      await put(7);
      await links.spend("h7", "usr_1", 1);
      await links.replace(reset, "h9");
      const ids = async (after: string | null, limit: number): Promise<string[]> =>
        (await links.listOpen("prj_1", 200, { after, limit })).map(({ id }) => id);
      expect(await ids(null, 2)).toEqual(["otl_1", "otl_2"]);
      expect(await ids("otl_2", 2)).toEqual(["otl_3"]);
    });

    test("keeps no link of a deleted project or user", async () => {
      await links.replace(invitation, "h1");
      await links.replace({ ...invitation, id: "otl_2", projectId: "prj_2" }, "h2");
      await links.replace(reset, "h9");
      await store.db.deleteFrom("project").where("id", "=", "prj_1").execute();
      expect(await links.findByHash("h1")).toBeNull();
      expect(await links.findByHash("h2")).not.toBeNull();
      await store.db.deleteFrom("project").execute();
      await store.db.deleteFrom("user").execute();
      expect(await links.findByHash("h9")).toBeNull();
    });

    test("deletes links that ended before a given time, a limited number at a time", async () => {
      for (const n of [1, 2, 3]) {
        await links.replace({ ...invitation, id: `otl_${n}`, email: `${n}@x.org`, expiresAt: n * 100 }, `h${n}`);
      }
      expect(await links.deleteEnded(200, 1)).toBe(1);
      expect(await links.deleteEnded(200, 5)).toBe(1);
      expect(await links.deleteEnded(200, 5)).toBe(0);
      expect(await links.findByHash("h3")).not.toBeNull();
    });
  });
}
