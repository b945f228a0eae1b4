import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { OpenedDatabase } from "../../installation/db/open.ts";
import { insertProject, insertUser, openMemoryStore } from "../../testing.fixture.ts";
import { CachedProjectOwners } from "./project-owners.ts";
import { ProjectStore } from "./project-store.ts";

let store: OpenedDatabase;

beforeEach(async () => {
  store = await openMemoryStore();
});
afterEach(() => store.close());

test("a project's owner is read once, and then returned synchronously", async () => {
  await insertUser(store, "usr_ann");
  await insertProject(store, "prj_1", "usr_ann");
  await insertProject(store, "prj_2", "usr_ann");
  const projects = new ProjectStore(store.db);
  const find = vi.spyOn(projects, "find");
  const owners = new CachedProjectOwners(projects);
  expect(await owners.ownerOf("prj_1")).toBe("usr_ann");
  expect(owners.ownerOf("prj_1")).toBe("usr_ann");
  expect(await owners.ownerOf("prj_2")).toBe("usr_ann");
  expect(find).toHaveBeenCalledTimes(2);
});

test("a missing project is returned as its own owner, and is not cached", async () => {
  const owners = new CachedProjectOwners(new ProjectStore(store.db));
  expect(await owners.ownerOf("prj_gone")).toBe("prj_gone");
  await insertUser(store, "usr_ann");
  await insertProject(store, "prj_gone", "usr_ann");
  expect(await owners.ownerOf("prj_gone")).toBe("usr_ann");
});
