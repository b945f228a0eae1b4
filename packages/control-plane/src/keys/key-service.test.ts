import { randomBytes } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ProjectAccess } from "../auth/access.ts";
import type { OpenedDatabase } from "../db/open.ts";
import {
  asUser,
  countingIds,
  fixedMemberships,
  insertProject,
  insertUser,
  openMemoryStore,
  STORES,
  TestClock,
} from "../testing.fixture.ts";
import { KeyService } from "./key-service.ts";
import { keyStoreContract } from "./key-store.contract.ts";
import { KeyStore } from "./key-store.ts";

for (const { name, open } of STORES) keyStoreContract(name, open);

describe("the key service", () => {
  let store: OpenedDatabase;
  let clock: TestClock;
  let service: KeyService;
  const ann = asUser("usr_ann");

  beforeEach(async () => {
    store = await openMemoryStore();
    clock = new TestClock();
    await insertUser(store, "usr_ann");
    await insertProject(store, "prj_1", "usr_ann");
    const roleOf = (projectId: string, userId: string): "member" | "viewer" | null => {
      if (projectId !== "prj_1") return null;
      return userId === "usr_ann" ? "member" : "viewer";
    };
    service = new KeyService({
      keys: new KeyStore(store.db),
      access: new ProjectAccess(fixedMemberships(roleOf)),
      clock,
      ids: countingIds(),
      randomBytes,
      publicUrl: "https://fairlead.example.org",
    });
  });
  afterEach(() => store.close());

  const update = (change: { enabled?: number; expires_at?: number }): Promise<unknown> =>
    store.db.updateTable("project_key").set(change).execute();

  test("a created key authenticates as its project", async () => {
    const { key, value } = await service.create(ann, { projectId: "prj_1", name: "mine" });
    expect(await service.authenticate(value)).toEqual({ keyId: key.id, projectId: "prj_1" });
  });

  test("the key itself is nowhere in the store", async () => {
    const { value } = await service.create(ann, { projectId: "prj_1", name: "mine" });
    const rows = JSON.stringify(await store.db.selectFrom("project_key").selectAll().execute());
    expect(rows).not.toContain(value);
    expect(rows).not.toContain(value.split("_")[2]);
  });

  test("strangers get 404 and viewers 403, and no key is made", async () => {
    await expect(service.create(ann, { projectId: "prj_2", name: "x" })).rejects.toMatchObject({ code: "not_found" });
    await expect(service.create(asUser("usr_bob"), { projectId: "prj_1", name: "x" })).rejects.toMatchObject({
      code: "permission_denied",
    });
    expect(await store.db.selectFrom("project_key").select("id").execute()).toEqual([]);
  });

  test("a key that was disabled stops within a second", async () => {
    const { value } = await service.create(ann, { projectId: "prj_1", name: "mine" });
    await service.authenticate(value);
    await update({ enabled: 0 });
    clock.advance(1001);
    await expect(service.authenticate(value)).rejects.toMatchObject({ code: "invalid_credential" });
  });

  test("keys of whoever leaves, or of a project that ends, stop as soon as they are forgotten", async () => {
    const mine = await service.create(ann, { projectId: "prj_1", name: "mine" });
    const other = await service.create(ann, { projectId: "prj_1", name: "other" });
    await store.db.updateTable("project_key").set({ user_id: "usr_bob" }).where("id", "=", other.key.id).execute();
    for (const { value } of [mine, other]) await service.authenticate(value);
    const disabled = await store.db.transaction().execute((tx) => service.disableKeysOf(tx, "prj_1", "usr_ann"));
    expect(disabled).toEqual([mine.key.id]);
    service.forget(disabled);
    await expect(service.authenticate(mine.value)).rejects.toMatchObject({ code: "invalid_credential" });
    await service.authenticate(other.value);
    service.forget(await store.db.transaction().execute((tx) => service.disableKeysOfProject(tx, "prj_1")));
    await expect(service.authenticate(other.value)).rejects.toMatchObject({ code: "invalid_credential" });
  });

  test("a key stops when it runs out, remembered or not", async () => {
    const { value } = await service.create(ann, { projectId: "prj_1", name: "mine" });
    await update({ expires_at: clock.now() + 500 });
    await service.authenticate(value);
    clock.advance(500);
    await expect(service.authenticate(value)).rejects.toMatchObject({ code: "expired_credential" });
  });

  test("an unknown key is invalid; one that cannot be checked is unavailable, never invalid", async () => {
    const { value } = await service.create(ann, { projectId: "prj_1", name: "mine" });
    await store.db.deleteFrom("project_key").execute();
    await expect(service.authenticate(value)).rejects.toMatchObject({ code: "invalid_credential" });
    await store.close();
    await expect(service.authenticate(value)).rejects.toMatchObject({ code: "unavailable", retryAfterSeconds: 1 });
  });

  test("a key in use survives a short absence of the store", async () => {
    const { key, value } = await service.create(ann, { projectId: "prj_1", name: "mine" });
    await service.authenticate(value);
    await store.close();
    expect(await service.authenticate(value)).toMatchObject({ keyId: key.id });
  });

  test("credentials of another kind are told where they belong", async () => {
    await expect(service.authenticate("eyJhbGciOiJFZERTQSJ9.e30.x")).rejects.toThrow(
      /https:\/\/fairlead\.example\.org/,
    );
    await expect(service.authenticate("flb_abc")).rejects.toThrow(/bootstrap token/);
    await expect(service.authenticate("sk-abc")).rejects.toThrow(/not a whole project key/);
  });
});
