import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { OpenedDatabase } from "../../installation/db/open.ts";
import { insertUser, type OpenStore } from "../../testing.fixture.ts";
import { MemberStore } from "../members/member-store.ts";
import type { ProjectRecord } from "./project.ts";
import { type ProjectStores, projectStores } from "./project-stores.ts";

export function projectStoreContract(name: string, open: OpenStore): void {
  describe(`the project store on ${name}`, () => {
    let store: OpenedDatabase;
    let stores: ProjectStores;
    const record = (id: string): ProjectRecord => ({
      id,
      userId: "usr_a",
      name: `näme ${id}`,
      createdAt: 1,
      updatedAt: 2,
      deletingSince: null,
      defaultModel: null,
    });
    const add = async (id: string, userId: string, role: "owner" | "admin" = "admin"): Promise<void> => {
      await stores.projects.insert(record(id));
      await new MemberStore(store.db).insert({ projectId: id, userId, role, createdAt: 3 });
    };
    const list = async (userId: string, after: string | null = null, limit = 10): Promise<string[]> =>
      (await stores.projects.listOfUser(userId, { after, limit })).map(({ id }) => id);

    beforeEach(async () => {
      store = await open();
      stores = projectStores(store.db);
      await insertUser(store, "usr_a");
      await insertUser(store, "usr_b");
    });
    afterEach(() => store.close());

    test("returns what was stored", async () => {
      await stores.projects.insert(record("prj_1"));
      await stores.projects.insert({ ...record("prj_2"), deletingSince: 9e12 });
      expect(await stores.projects.find("prj_1")).toEqual(record("prj_1"));
      expect(await stores.projects.find("prj_2")).toEqual({ ...record("prj_2"), deletingSince: 9e12 });
      expect(await stores.projects.find("prj_3")).toBeNull();
    });

    test("lists only a member's projects, page by page, oldest first", async () => {
      for (const id of ["prj_3", "prj_1", "prj_2"]) await add(id, "usr_a");
      await add("prj_0", "usr_b");
      expect(await list("usr_a", null, 2)).toEqual(["prj_1", "prj_2"]);
      expect(await list("usr_a", "prj_2", 2)).toEqual(["prj_3"]);
      expect(await list("usr_a", "prj_3", 2)).toEqual([]);
    });

    test("shows a project that is being deleted only to its owners", async () => {
      await add("prj_1", "usr_a", "owner");
      await new MemberStore(store.db).insert({ projectId: "prj_1", userId: "usr_b", role: "admin", createdAt: 3 });
      expect(await list("usr_b")).toEqual(["prj_1"]);
      await stores.projects.markDeleting("prj_1", 5);
      expect(await list("usr_b")).toEqual([]);
      expect(await list("usr_a")).toEqual(["prj_1"]);
      expect(await stores.projects.find("prj_1")).toMatchObject({ deletingSince: 5 });
    });

    test("changes the name and the default model", async () => {
      await stores.projects.insert(record("prj_1"));
      const renamed = { ...record("prj_1"), name: "neu ✓", defaultModel: "box/tiny", updatedAt: 7 };
      expect(await stores.projects.update("prj_1", { name: "neu ✓", defaultModel: "box/tiny", now: 7 })).toEqual(
        renamed,
      );
      expect(await stores.projects.find("prj_1")).toEqual(renamed);
      expect(await stores.projects.update("prj_2", { name: "x", defaultModel: null, now: 7 })).toBeNull();
    });

    test("lists projects that are being deleted, earliest request first, and deletes no other", async () => {
      for (const id of ["prj_1", "prj_2", "prj_3"]) await add(id, "usr_a");
      expect(await stores.projects.listDeleting()).toEqual([]);
      await stores.projects.markDeleting("prj_2", 6);
      await stores.projects.markDeleting("prj_3", 5);
      expect(await stores.projects.listDeleting()).toEqual(["prj_3", "prj_2"]);
      for (const id of ["prj_1", "prj_2"]) await stores.projects.deleteMarked(id);
      expect(await list("usr_a")).toEqual(["prj_1"]);
      expect(await stores.projects.find("prj_2")).toBeNull();
      expect(await new MemberStore(store.db).membershipOf("prj_2", "usr_a")).toBeNull();
    });

    test("stores nothing if the transaction fails", async () => {
      const work = stores.transaction(async ({ projects }) => {
        await projects.insert(record("prj_1"));
        await projects.insert({ ...record("prj_2"), userId: "usr_nobody" });
      });
      await expect(work).rejects.toThrow();
      expect(await stores.projects.find("prj_1")).toBeNull();
    });
  });
}
