import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { OpenedDatabase } from "../../installation/db/open.ts";
import { insertProject, insertUser, type OpenStore } from "../../testing.fixture.ts";
import { MemberStore } from "./member-store.ts";

export function memberStoreContract(name: string, open: OpenStore): void {
  describe(`the member store on ${name}`, () => {
    let store: OpenedDatabase;
    let members: MemberStore;
    const add = (projectId: string, userId: string, role: "owner" | "admin" | "viewer"): Promise<void> =>
      members.insert({ projectId, userId, role, createdAt: 3 });
    const markDeleting = async (id: string): Promise<void> => {
      await store.db.updateTable("project").set({ deleting_since: 1 }).where("id", "=", id).execute();
    };

    beforeEach(async () => {
      store = await open();
      members = new MemberStore(store.db);
      for (const id of ["usr_a", "usr_b", "usr_c"]) await insertUser(store, id);
      for (const id of ["prj_1", "prj_2"]) await insertProject(store, id, "usr_a");
    });
    afterEach(() => store.close());

    test("returns what was stored, with the member's address", async () => {
      await add("prj_1", "usr_a", "admin");
      const ann = { projectId: "prj_1", userId: "usr_a", role: "admin", createdAt: 3, email: "usr_a@example.org" };
      expect(await members.find("prj_1", "usr_a")).toEqual(ann);
      expect(await members.findByEmail("prj_1", "usr_a@example.org")).toEqual(ann);
      for (const projectId of ["prj_2", "prj_none"]) {
        expect(await members.find(projectId, "usr_a")).toBeNull();
        expect(await members.findByEmail(projectId, "usr_a@example.org")).toBeNull();
      }
    });

    test("returns the membership, and whether the project is being deleted", async () => {
      await add("prj_1", "usr_a", "viewer");
      expect(await members.membershipOf("prj_1", "usr_a")).toEqual({ role: "viewer", deleting: false });
      expect(await members.membershipOf("prj_1", "usr_b")).toBeNull();
      expect(await members.membershipOf("prj_2", "usr_a")).toBeNull();
      await markDeleting("prj_1");
      expect(await members.membershipOf("prj_1", "usr_a")).toEqual({ role: "viewer", deleting: true });
    });

    test("returns a user's roles, omitting projects that are being deleted unless the user owns them", async () => {
      await add("prj_2", "usr_a", "admin");
      await add("prj_1", "usr_a", "owner");
      await add("prj_1", "usr_b", "owner");
      const first = { projectId: "prj_1", role: "owner" };
      expect(await members.rolesOf("usr_a")).toEqual([first, { projectId: "prj_2", role: "admin" }]);
      for (const id of ["prj_1", "prj_2"]) await markDeleting(id);
      expect(await members.rolesOf("usr_a")).toEqual([first]);
    });

    test("lists only the project's members, page by page", async () => {
      for (const id of ["usr_c", "usr_a", "usr_b"]) await add("prj_1", id, "viewer");
      await add("prj_2", "usr_a", "viewer");
      const ids = async (after: string | null, limit: number): Promise<string[]> =>
        (await members.list("prj_1", { after, limit })).map(({ userId }) => userId);
      expect(await ids(null, 2)).toEqual(["usr_a", "usr_b"]);
      expect(await ids("usr_b", 2)).toEqual(["usr_c"]);
    });

    test("changes and removes one member of one project, and counts its owners", async () => {
      for (const projectId of ["prj_1", "prj_2"]) {
        for (const id of ["usr_a", "usr_b"]) await add(projectId, id, "owner");
      }
      expect(await members.countOwners("prj_1")).toBe(2);
      await members.setRole("prj_1", "usr_a", "viewer");
      expect(await members.countOwners("prj_1")).toBe(1);
      await members.delete("prj_1", "usr_b");
      expect(await members.countOwners("prj_1")).toBe(0);
      expect(await members.find("prj_1", "usr_b")).toBeNull();
      expect(await members.find("prj_1", "usr_a")).toMatchObject({ role: "viewer" });
      expect(await members.countOwners("prj_2")).toBe(2);
    });

    test("lets one transaction at a time lock a project", async () => {
      const order: string[] = [];
      const hold = (who: string): Promise<void> =>
        store.db.transaction().execute(async (transaction) => {
          const held = new MemberStore(transaction);
          await held.holdProject("prj_1");
          order.push(`${who} in`);
          await held.countOwners("prj_1");
          order.push(`${who} out`);
        });
      await Promise.all(["a", "b", "c"].map(hold));
      for (let i = 0; i < order.length; i += 2) expect(order[i + 1]).toBe(order[i]?.replace("in", "out"));
    });
  });
}
