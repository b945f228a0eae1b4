import { countingIds, TestClock } from "@fairlead/protocol/testing/test-clock";
import { MAX_NANO_DOLLARS } from "@fairlead/protocol/values/money";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { AuditService } from "../../access/audit/audit-service.ts";
import type { UserPrincipal } from "../../access/auth/principal.ts";
import { aloneOn } from "../../installation/cluster/membership.ts";
import type { OpenedDatabase } from "../../installation/db/open.ts";
import { MembershipService } from "../../people/members/membership-service.ts";
import { ProjectService } from "../../people/projects/project-service.ts";
import { projectStores } from "../../people/projects/project-stores.ts";
import { BoundCounters } from "../../telemetry/bounds/bound-counters.ts";
import { insertUser, STORES } from "../../testing.fixture.ts";
import { createBillingServices } from "../money-room.ts";
import type { BillingAccessService } from "./billing-access-service.ts";
import type { BillingService } from "./billing-service.ts";
import { BillingStore } from "./billing-store.ts";

describe.each(STORES)("a project's balance on $name", ({ open }) => {
  let store: OpenedDatabase;
  let ann: UserPrincipal;
  let root: UserPrincipal;
  let projectId: string;
  let billing: BillingService;
  let money: BillingAccessService;

  beforeEach(async () => {
    store = await open();
    ann = await insertUser(store, "usr_ann");
    root = { ...(await insertUser(store, "usr_root")), platformAdmin: true };
    const ports = { clock: new TestClock(), ids: countingIds() };
    const audit = new AuditService(ports);
    const memberships = new MembershipService(store);
    const projects = new ProjectService({ ...ports, audit, memberships, stores: projectStores(store.db) });
    projectId = (await projects.create(ann, { name: "Support" })).id;
    const log = pino({ level: "silent" });
    const bounds = new BoundCounters();
    const parts = {
      ...ports,
      ...store,
      mode: "prepaid",
      audit,
      projects,
      log,
      bounds,
      membership: aloneOn("inc_1"),
    } as const;
    ({ billing, billingAccess: money } = createBillingServices(parts));
  });
  afterEach(async () => {
    await billing.close();
    await store.close();
  });

  const credit = (amount: number, caller = root): Promise<unknown> =>
    money.credit(caller, { projectId, amount, note: "Invoice 17" });

  test("is credited by platform administrators, and is available immediately", async () => {
    await credit(1000);
    expect(await money.balance(ann, projectId)).toEqual({ mode: "prepaid", free: 1000, held: 0, runningCalls: 0 });
    expect(await money.ledger(ann, projectId, { after: null, limit: 10 })).toMatchObject([
      { kind: "credit", amount: 1000, note: "Invoice 17" },
    ]);
  });

  test("cannot be credited by anyone else: members are rejected, and strangers get not_found", async () => {
    const ben = await insertUser(store, "usr_ben");
    await expect(credit(1000, ann)).rejects.toMatchObject({ code: "permission_denied" });
    await expect(credit(1000, ben)).rejects.toMatchObject({ code: "not_found" });
    await expect(money.balance(ben, projectId)).rejects.toMatchObject({ code: "not_found" });
    await expect(money.ledger(root, projectId, { after: null, limit: 10 })).rejects.toMatchObject({
      code: "not_found",
    });
    await expect(money.credit(root, { projectId: "prj_none", amount: 1, note: "" })).rejects.toMatchObject({
      code: "not_found",
    });
  });

  test("can be reduced by what is neither spent nor held, and changes are recorded both ways", async () => {
    await credit(1000);
    await expect(credit(-1001)).rejects.toMatchObject({ code: "invalid_request", param: "amountNanoDollars" });
    await credit(-400);
    expect(await money.balance(root, projectId)).toMatchObject({ free: 600 });
    const events = await store.db
      .selectFrom("audit_event")
      .select("detail")
      .where("action", "=", "billing.credit")
      .execute();
    expect(events.map(({ detail }) => JSON.parse(detail) as unknown)).toEqual([
      { amountNanoDollars: 1000, note: "Invoice 17" },
      { amountNanoDollars: -400, note: "Invoice 17" },
    ]);
  });

  test("is never withdrawn twice by simultaneous withdrawals", async () => {
    await credit(1000);
    const taken = await Promise.allSettled(Array.from({ length: 5 }, () => credit(-400)));
    expect(taken.filter(({ status }) => status === "fulfilled")).toHaveLength(2);
    expect(await money.balance(root, projectId)).toMatchObject({ free: 200 });
    expect(await new BillingStore(store.db).ledgerSum(projectId)).toBe(200);
  });

  test("never exceeds the largest exact integer", async () => {
    const half = MAX_NANO_DOLLARS / 2;
    const given = await Promise.allSettled(Array.from({ length: 3 }, () => credit(half)));
    expect(given.filter(({ status }) => status === "fulfilled")).toHaveLength(2);
    await expect(credit(1)).rejects.toMatchObject({ code: "invalid_request" });
    expect(await new BillingStore(store.db).ledgerSum(projectId)).toBe(MAX_NANO_DOLLARS);
  });

  test("is summed up correctly after simultaneous credits", async () => {
    await Promise.all(Array.from({ length: 20 }, () => credit(50)));
    expect(await money.balance(root, projectId)).toMatchObject({ free: 1000 });
    expect(await new BillingStore(store.db).ledgerSum(projectId)).toBe(1000);
  });
});
