import { countingIds, TestClock } from "@fairlead/protocol/testing/test-clock";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { OpenedDatabase } from "../../installation/db/open.ts";
import { removeExpired } from "../../installation/process/retention.ts";
import { asUser, fixedMemberships, insertUser, STORES } from "../../testing.fixture.ts";
import { auditRetention } from "../access-room.ts";
import { ProjectAccess } from "../auth/access.ts";
import type { UserPrincipal } from "../auth/principal.ts";
import type { AuditEntry } from "./audit.ts";
import { AuditReadService } from "./audit-read-service.ts";
import { AuditService } from "./audit-service.ts";

const DAY_MS = 24 * 3_600_000;
const PAGE = { after: null, limit: 50 };

describe.each(STORES)("the audit log on $name", ({ open }) => {
  let store: OpenedDatabase;
  let clock: TestClock;
  let audit: AuditService;
  let log: AuditReadService;
  let ann: UserPrincipal;

  const entry = (changes: Partial<AuditEntry> = {}): AuditEntry => ({
    actor: { ...ann, origin: { requestId: "req_1", address: "192.0.2.1" } },
    action: "project.create",
    projectId: "prj_1",
    resource: { type: "project", id: "prj_1", name: "One" },
    ...changes,
  });

  beforeEach(async () => {
    store = await open();
    clock = new TestClock();
    audit = new AuditService({ clock, ids: countingIds() });
    const roleOf = (_projectId: string, userId: string): "admin" | "member" | null =>
      userId === "usr_ann" ? "admin" : userId === "usr_mel" ? "member" : null;
    const access = new ProjectAccess(fixedMemberships(roleOf));
    log = new AuditReadService({ longReads: store.longReads, access });
    ann = await insertUser(store, "usr_ann");
  });
  afterEach(() => store.close());

  test("records who did what, where and in which request", async () => {
    await audit.record(store.db, entry({ detail: { secret: `flk_${"x".repeat(60)}`, n: 1 } }));
    expect(await log.list(ann, "prj_1", { page: PAGE })).toEqual([
      {
        id: expect.stringMatching(/^aud_/),
        at: clock.now(),
        action: "project.create",
        actor: { type: "user", id: "usr_ann", email: "usr_ann@example.org" },
        projectId: "prj_1",
        resource: { type: "project", id: "prj_1", name: "One" },
        address: "192.0.2.1",
        requestId: "req_1",
        detail: { secret: "[credential]", n: 1 },
      },
    ]);
  });

  test("accepts events that no request caused, and hostile text of any length", async () => {
    const name = `\0'); drop table audit_event; -- <script>${"é".repeat(10_000)}`;
    const actor = { kind: "system", name: "local_admin" } as const;
    await audit.record(store.db, entry({ actor, projectId: null, resource: { type: "user", id: name, name } }));
    const [event] = await log.listAll({ ...ann, platformAdmin: true }, { page: PAGE });
    expect(event).toMatchObject({ actor: { type: "system", id: "local_admin" }, address: "", requestId: "" });
    expect(event?.resource.name).toHaveLength(256);
  });

  test("is readable by the roles with permission, and hides the project from strangers", async () => {
    await expect(log.list(asUser("usr_mel"), "prj_1", { page: PAGE })).rejects.toMatchObject({
      code: "permission_denied",
    });
    await expect(log.list(asUser("usr_bob"), "prj_1", { page: PAGE })).rejects.toMatchObject({ code: "not_found" });
    await expect(log.listAll(ann, { page: PAGE })).rejects.toMatchObject({ code: "permission_denied" });
  });

  test("shows events without a project only to platform administrators", async () => {
    await audit.record(store.db, entry());
    await audit.record(store.db, entry({ action: "user.create", projectId: null }));
    expect((await log.list(ann, "prj_1", { page: PAGE })).map(({ action }) => action)).toEqual(["project.create"]);
    const all = await log.listAll({ ...ann, platformAdmin: true }, { page: PAGE });
    expect(all.map(({ action }) => action)).toEqual(["user.create", "project.create"]);
  });

  test("deletes events older than the configured number of days, and no newer ones", async () => {
    await audit.record(store.db, entry());
    clock.advance(10 * DAY_MS);
    await audit.record(store.db, entry({ action: "project.rename" }));
    clock.advance(1);
    const retention = auditRetention(store.longReads, 10, clock);
    expect(await removeExpired(retention)).toBe(1);
    expect((await log.list(ann, "prj_1", { page: PAGE })).map(({ action }) => action)).toEqual(["project.rename"]);
  });
});
