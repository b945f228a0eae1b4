import { countingIds, TestClock } from "@fairlead/protocol/testing/test-clock";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { OpenedDatabase } from "../../installation/db/open.ts";
import { asUser, fixedMemberships, insertProject, insertUser, STORES } from "../../testing.fixture.ts";
import { AuditService } from "../audit/audit-service.ts";
import { ProjectAccess } from "../auth/access.ts";
import type { UserPrincipal } from "../auth/principal.ts";
import { NO_CALL_LIMITS } from "./call-limits.ts";
import { LimitService } from "./limit-service.ts";
import { limitStoreContract } from "./limit-store.contract.ts";
import { LimitStore } from "./limit-store.ts";

for (const { name, open } of STORES) limitStoreContract(name, open);

describe.each(STORES)("a project's limits on $name", ({ open }) => {
  let store: OpenedDatabase;
  let limits: LimitService;
  let clock: TestClock;
  const ann = asUser("usr_ann");
  const root: UserPrincipal = { ...asUser("usr_root"), platformAdmin: true };
  const server = { requestsPerMinute: 100, tokensPerMinute: null, parallelCalls: null };

  beforeEach(async () => {
    store = await open();
    clock = new TestClock();
    await insertUser(store, "usr_ann");
    await insertUser(store, "usr_root");
    await insertProject(store, "prj_1", "usr_ann");
    const roles: Readonly<Record<string, "admin" | "viewer">> = { usr_ann: "admin", usr_ben: "viewer" };
    limits = new LimitService({
      limits: new LimitStore(store.db),
      server,
      access: new ProjectAccess(
        fixedMemberships((projectId, userId) => (projectId === "prj_1" && roles[userId]) || null),
      ),
      audit: new AuditService({ clock, ids: countingIds() }),
      projects: { nameOf: async () => "Support" },
      clock,
    });
  });
  afterEach(() => store.close());

  test("default to the server's until the project sets its own, which apply immediately", async () => {
    expect(await limits.effective("prj_1")).toEqual(server);
    await limits.update(ann, "prj_1", { requestsPerMinute: 5, parallelCalls: 2 });
    expect(await limits.effective("prj_1")).toEqual({ ...server, requestsPerMinute: 5, parallelCalls: 2 });
    expect(await limits.get(ann, "prj_1")).toEqual({ requestsPerMinute: 5, tokensPerMinute: null, parallelCalls: 2 });
    await limits.update(ann, "prj_1", { requestsPerMinute: null });
    expect(await limits.effective("prj_1")).toEqual({ ...server, parallelCalls: 2 });
  });

  test("can exceed the server's only if a platform administrator sets them", async () => {
    await expect(limits.update(ann, "prj_1", { tokensPerMinute: 9, requestsPerMinute: 101 })).rejects.toMatchObject({
      code: "permission_denied",
      param: "requestsPerMinute",
    });
    expect(await limits.get(ann, "prj_1")).toEqual(NO_CALL_LIMITS);
    await limits.update(root, "prj_1", { requestsPerMinute: 500 });
    expect(await limits.effective("prj_1")).toMatchObject({ requestsPerMinute: 500 });
    expect(await limits.get(root, "prj_1")).toMatchObject({ requestsPerMinute: 500 });
  });

  test("are readable by members, changed by owners and administrators, and hidden from strangers", async () => {
    expect(await limits.get(asUser("usr_ben"), "prj_1")).toEqual(NO_CALL_LIMITS);
    await expect(limits.update(asUser("usr_ben"), "prj_1", { parallelCalls: 1 })).rejects.toMatchObject({
      code: "permission_denied",
    });
    for (const call of [
      limits.get(asUser("usr_cid"), "prj_1"),
      limits.update(asUser("usr_cid"), "prj_1", { parallelCalls: 1 }),
      limits.get(ann, "prj_2"),
    ]) {
      await expect(call).rejects.toMatchObject({ code: "not_found" });
    }
  });

  test("record what changed, and nothing without a change", async () => {
    await limits.update(ann, "prj_1", { parallelCalls: 7 });
    await limits.update(ann, "prj_1", { parallelCalls: 7 });
    const events = await store.db.selectFrom("audit_event").select(["action", "detail"]).execute();
    expect(events).toEqual([{ action: "project.limits", detail: '{"parallelCalls":7}' }]);
  });

  test("keep both of two simultaneous changes", async () => {
    await Promise.all([
      limits.update(ann, "prj_1", { parallelCalls: 7 }),
      limits.update(ann, "prj_1", { tokensPerMinute: 70 }),
    ]);
    expect(await limits.get(ann, "prj_1")).toEqual({ requestsPerMinute: null, tokensPerMinute: 70, parallelCalls: 7 });
  });
});
