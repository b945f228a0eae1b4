import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { OpenedDatabase } from "../db/open.ts";
import { insertUser, type OpenStore } from "../testing.fixture.ts";
import type { ProjectRecord } from "./project.ts";
import { type ProjectStores, projectStores } from "./project-stores.ts";

export function projectStoreContract(name: string, open: OpenStore): void {
  describe(`the project stores on ${name}`, () => {
    let store: OpenedDatabase;
    let stores: ProjectStores;
    const record = (id: string): ProjectRecord => ({
      id,
      userId: "usr_a",
      name: `näme ${id}`,
      createdAt: 1,
      updatedAt: 2,
    });
    const add = async (id: string, userId: string): Promise<void> => {
      await stores.projects.insert(record(id));
      await stores.members.insert({ projectId: id, userId, role: "admin", createdAt: 3 });
    };

    beforeEach(async () => {
      store = await open();
      stores = projectStores(store.db);
      await insertUser(store, "usr_a");
      await insertUser(store, "usr_b");
    });
    afterEach(() => store.close());

    test("give back what was put in", async () => {
      await add("prj_1", "usr_a");
      expect(await stores.projects.find("prj_1")).toEqual(record("prj_1"));
      expect(await stores.projects.find("prj_2")).toBeNull();
      expect(await stores.members.roleOf("prj_1", "usr_a")).toBe("admin");
      expect(await stores.members.roleOf("prj_1", "usr_b")).toBeNull();
      expect(await stores.members.roleOf("prj_2", "usr_a")).toBeNull();
      expect(await stores.members.rolesOf("usr_a")).toEqual([{ projectId: "prj_1", role: "admin" }]);
    });

    test("list only the projects of a member, page by page, the oldest first", async () => {
      for (const id of ["prj_3", "prj_1", "prj_2"]) await add(id, "usr_a");
      await add("prj_0", "usr_b");
      const ids = async (after: string | null, limit: number): Promise<string[]> =>
        (await stores.projects.listOfUser("usr_a", { after, limit })).map(({ id }) => id);
      expect(await ids(null, 2)).toEqual(["prj_1", "prj_2"]);
      expect(await ids("prj_2", 2)).toEqual(["prj_3"]);
      expect(await ids("prj_3", 2)).toEqual([]);
    });

    test("a transaction that fails leaves nothing", async () => {
      const work = stores.transaction(async ({ projects, members }) => {
        await projects.insert(record("prj_1"));
        await members.insert({ projectId: "prj_1", userId: "usr_nobody", role: "owner", createdAt: 0 });
      });
      await expect(work).rejects.toThrow();
      expect(await stores.projects.find("prj_1")).toBeNull();
    });
  });
}
