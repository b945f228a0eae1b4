import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { encodeId } from "@fairlead/protocol/values/ids";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { AuditStore } from "../../access/audit/audit-store.ts";
import { projectStores } from "../../people/projects/project-stores.ts";
import { type Config, loadConfig } from "../config/config.ts";
import { openLocalAdmin } from "./local-admin.ts";
import { Running } from "./running.fixture.ts";

const projectId = encodeId("project", 1, new Uint8Array(10));
const credit = { projectId, amountNanoDollars: 1000, note: "Invoice 17" };

let dir: string;
let config: Config;
let server: Running;
beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), "fairlead-money-"));
  config = loadConfig({ env: { FAIRLEAD_DATA_DIR: join(dir, "data"), FAIRLEAD_BILLING_MODE: "prepaid" } });
  server = await Running.start(config);
  const { users, db } = server.installation;
  const actor = { kind: "system", name: "server" } as const;
  const { user } = await users.ensure({ email: "ann@example.org", name: "Ann", platformAdmin: false, actor });
  const project = { id: projectId, userId: user.id, name: "Support", createdAt: 1, updatedAt: 1 };
  await projectStores(db).projects.insert({ ...project, deletingSince: null, defaultModel: null });
});
afterEach(async () => {
  await server.stop();
  rmSync(dir, { recursive: true });
});

describe("credits from the server's own machine", () => {
  test("are available to the running server's next call, and are recorded as local administration", async () => {
    expect((await server.billing.account(projectId)).balance).toBe(0);
    const admin = await openLocalAdmin(config);
    const { ledgerEntry } = await admin.addCredits(credit);
    expect(ledgerEntry).toMatchObject({ kind: "credit", amountNanoDollars: 1000, note: "Invoice 17" });
    expect((await server.billing.account(projectId)).balance).toBe(1000);
    const page = { after: null, limit: 10 };
    const recorded = await new AuditStore(server.installation.db).list(projectId, { action: "billing.credit" }, page);
    expect(recorded).toMatchObject([{ actor: { type: "system", id: "local_admin" }, projectId }]);
  });

  test("can be added while no server runs, and are available when it starts", async () => {
    await server.stop();
    const admin = await openLocalAdmin(config);
    await admin.addCredits(credit);
    await admin.addCredits({ ...credit, amountNanoDollars: -400 });
    expect(await admin.checkLedger()).toEqual({ projects: 1, entries: 2, wrong: [] });
    await admin.close();
    server = await Running.start(config);
    expect((await server.billing.account(projectId)).balance).toBe(600);
  });

  test("are rejected for an unknown project, a zero amount, and a removal of more than the balance", async () => {
    const admin = await openLocalAdmin(config);
    await expect(admin.addCredits({ ...credit, projectId: "prj_none" })).rejects.toMatchObject({ code: "not_found" });
    await expect(admin.addCredits({ ...credit, amountNanoDollars: 0 })).rejects.toMatchObject({
      code: "invalid_request",
    });
    await expect(admin.addCredits({ ...credit, amountNanoDollars: -1 })).rejects.toMatchObject({
      code: "invalid_request",
      message: expect.stringContaining("only $0.00 can be removed") as string,
    });
  });

  test("that differ from the ledger are found", async () => {
    const admin = await openLocalAdmin(config);
    await admin.addCredits(credit);
    expect(await admin.checkLedger()).toEqual({ projects: 1, entries: 1, wrong: [] });
    const { db } = server.installation;
    await db.updateTable("project_balance").set({ balance: 1001 }).execute();
    const settled = {
      id: "led_2",
      project_id: projectId,
      at: 1,
      kind: "settle",
      call_id: "req_1",
      spender_id: null,
      note: "",
    };
    // The store itself refuses to charge a call twice.
    await db.schema.dropIndex("ledger_entry_settle_idx").execute();
    await db
      .insertInto("ledger_entry")
      .values({ ...settled, amount: -1500 })
      .execute();
    await db
      .insertInto("ledger_entry")
      .values({ ...settled, id: "led_3", amount: 500 })
      .execute();
    await db
      .insertInto("open_hold")
      .values({
        call_id: "req_2",
        project_id: projectId,
        spender_id: null,
        held: 7,
        delivered: 0,
        owner: "inc_1",
        opened_at: 1,
      })
      .execute();
    expect(await admin.checkLedger()).toMatchObject({
      entries: 3,
      wrong: [{ projectId, balance: 1001, sum: 0, lowest: -500, held: 0, openHolds: 7, chargedTwice: 1 }],
    });
  });
});
