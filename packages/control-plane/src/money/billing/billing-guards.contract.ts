import { isCheckViolation, isPrimaryKeyViolation, isUniqueViolation } from "@fairlead/hosting/errors/store-errors";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { OpenedDatabase } from "../../installation/db/open.ts";
import type { OpenStore } from "../../testing.fixture.ts";
import { BillingStage, PROJECT, usageOf } from "./billing.fixture.ts";
import { BillingBatch } from "./billing-batch.ts";
import type { BillingService } from "./billing-service.ts";
import { BillingStore } from "./billing-store.ts";
import { LedgerCheck } from "./ledger-check.ts";

/** What holds although two processes, or a fault of ours, would have it otherwise. */
export function billingGuardsContract(name: string, open: OpenStore): void {
  describe(`the store's guards of money on ${name}`, () => {
    let stage: BillingStage;
    let store: OpenedDatabase;
    let billing: BillingService;

    beforeEach(async () => {
      stage = new BillingStage(await open());
      ({ store, billing } = stage);
      await stage.credit(1000);
    });
    afterEach(() => stage.close());

    const wrong = async (): Promise<unknown> => (await new LedgerCheck(store.maintenance).run()).wrong;

    test("a start closes only the holds of processes that are gone", async () => {
      const living = stage.process({ membership: { incarnation: "inc_living", living: async () => [] } });
      const hold = await living.open(stage.call());
      await living.flush();
      await billing.open(stage.call());
      await billing.flush();
      const next = stage.process({
        membership: { incarnation: "inc_next", living: async () => ["inc_next", "inc_living"] },
      });
      expect(await next.recover()).toBe(1);
      hold.settle(usageOf(10, 20));
      await living.close();
      expect(await stage.balances()).toEqual({ stored: 970, ledger: 970 });
      expect(await wrong()).toEqual([]);
      await next.close();
    });

    test("no call is settled twice", async () => {
      (await billing.open(stage.call({ callId: "req_once" }))).settle(usageOf(10, 20));
      await billing.flush();
      const again = new BillingBatch();
      const entry = { projectId: PROJECT, at: 0, callId: "req_once", spenderId: null, note: "" } as const;
      again.append({ ...entry, id: "led_again", kind: "settle", amount: -30 });
      const writing = store.writeTogether(new BillingStore(store.db).statements(again));
      await expect(writing).rejects.toSatisfy(isUniqueViolation);
      await expect(writing).rejects.not.toSatisfy(isPrimaryKeyViolation);
      expect(await stage.balances()).toEqual({ stored: 970, ledger: 970 });
    });

    test("no balance falls below zero", async () => {
      const batch = new BillingBatch();
      const entry = { projectId: PROJECT, at: 0, callId: null, spenderId: null, note: "" } as const;
      batch.append({ ...entry, id: "led_much", kind: "adjust", amount: -1001 });
      await expect(store.writeTogether(new BillingStore(store.db).statements(batch))).rejects.toSatisfy(
        isCheckViolation,
      );
      expect(await stage.balances()).toEqual({ stored: 1000, ledger: 1000 });
    });

    test("what a call has just given back can be taken out, although it is not written yet", async () => {
      const holds = await Promise.all(Array.from({ length: 10 }, () => billing.open(stage.call())));
      await billing.flush();
      for (const hold of holds) hold.settle(null);
      await stage.credit(-1000);
      expect(await stage.balances()).toEqual({ stored: 0, ledger: 0 });
      expect(await wrong()).toEqual([]);
    });

    test("what two processes spend adds up", async () => {
      const other = stage.process({ mode: "off" });
      await other.spenderAccount("key_1");
      (await billing.open(stage.call())).settle(usageOf(10, 20));
      await billing.flush();
      (await other.open(stage.call())).settle(usageOf(10, 30));
      await other.close();
      const next = stage.process();
      expect((await next.spenderAccount("key_1")).spent("total")).toBe(30 + 40);
      await next.close();
    });

    test("a process leaves one row that tells its batches apart, and the next one removes it", async () => {
      for (let count = 0; count < 3; count++) {
        (await billing.open(stage.call())).settle(usageOf(10, 0));
        await billing.flush();
      }
      const rows = (): Promise<unknown[]> => store.db.selectFrom("billing_batch").select("owner").execute();
      expect(await rows()).toHaveLength(1);
      const next = stage.process();
      await next.recover();
      expect(await rows()).toEqual([]);
      await next.close();
    });
  });
}
