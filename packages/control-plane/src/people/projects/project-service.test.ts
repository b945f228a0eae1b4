import { countingIds, TestClock } from "@fairlead/protocol/testing/test-clock";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { AuditService } from "../../access/audit/audit-service.ts";
import type { UserPrincipal } from "../../access/auth/principal.ts";
import type { OpenedDatabase } from "../../installation/db/open.ts";
import { insertUser, openMemoryStore, STORES } from "../../testing.fixture.ts";
import { MembershipService } from "../members/membership-service.ts";
import { toProject } from "./project.ts";
import { ProjectService } from "./project-service.ts";
import { projectStoreContract } from "./project-store.contract.ts";
import { projectStores } from "./project-stores.ts";

for (const { name, open } of STORES) projectStoreContract(name, open);

describe("the project service", () => {
  let store: OpenedDatabase;
  let service: ProjectService;
  let memberships: MembershipService;
  let ann: UserPrincipal;
  let bob: UserPrincipal;

  beforeEach(async () => {
    store = await openMemoryStore();
    ann = await insertUser(store, "usr_ann");
    bob = await insertUser(store, "usr_bob");
    const ports = { clock: new TestClock(), ids: countingIds() };
    memberships = new MembershipService(store);
    const audit = new AuditService(ports);
    service = new ProjectService({ ...ports, audit, memberships, stores: projectStores(store.db) });
  });
  afterEach(() => store.close());

  test("makes the user who creates a project its owner", async () => {
    const project = await service.create(ann, { name: "one" });
    expect(toProject(project)).toMatchObject({ userId: "usr_ann", name: "one", createdAt: "2026-01-01T00:00:00.000Z" });
    expect(await memberships.membershipOf(project.id, "usr_ann")).toEqual({ role: "owner", deleting: false });
    expect(await service.get(ann, project.id)).toEqual(project);
  });

  test("does not let a stranger tell the project of another user from one that does not exist", async () => {
    const project = await service.create(ann, { name: "one" });
    const messageOf = (id: string): Promise<unknown> => service.get(bob, id).catch((error: unknown) => error);
    expect(await messageOf(project.id)).toEqual(await messageOf("prj_none"));
    expect(await service.list(bob, { after: null, limit: 10 })).toEqual([]);
  });

  test("leaves no partial project behind for a deleted user", async () => {
    await store.db.deleteFrom("user").where("id", "=", "usr_bob").execute();
    await expect(service.create(bob, { name: "one" })).rejects.toThrow();
    expect(await store.db.selectFrom("project").select("id").execute()).toEqual([]);
    expect(await store.db.selectFrom("audit_event").select("id").execute()).toEqual([]);
  });

  test("keeps omitted fields in a change, records what changed, and announces it", async () => {
    const { id } = await service.create(ann, { name: "one" });
    const changed: string[] = [];
    service.modelChanges.listen((projectId) => changed.push(projectId));
    await service.update(ann, id, { defaultModel: "box/tiny" });
    expect(await service.update(ann, id, { name: "two" })).toMatchObject({ name: "two", defaultModel: "box/tiny" });
    expect(await service.defaultModelOf(id)).toBe("box/tiny");
    const after = await service.update(ann, id, { name: "two", defaultModel: null });
    expect(toProject(after)).not.toHaveProperty("defaultModel");
    await service.update(ann, id, {});
    expect(changed).toEqual([id, id, id, id]);
    const rows = await store.db.selectFrom("audit_event").select(["action", "detail"]).orderBy("id").execute();
    expect(rows.slice(1)).toEqual([
      { action: "project.default_model", detail: '{"before":null,"after":"box/tiny"}' },
      { action: "project.rename", detail: '{"before":"one"}' },
      { action: "project.default_model", detail: '{"before":"box/tiny","after":null}' },
    ]);
    await expect(service.update(bob, id, { defaultModel: "x/y" })).rejects.toMatchObject({ code: "not_found" });
  });
});
