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
  describe(`the billing guards of the store on ${name}`, () => {
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

    test("close only the holds of dead processes at startup", async () => {
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

    test("prevent a second settlement of a call", async () => {
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

    test("keep every balance at zero or above", async () => {
      const batch = new BillingBatch();
      const entry = { projectId: PROJECT, at: 0, callId: null, spenderId: null, note: "" } as const;
      batch.append({ ...entry, id: "led_much", kind: "adjust", amount: -1001 });
      await expect(store.writeTogether(new BillingStore(store.db).statements(batch))).rejects.toSatisfy(
        isCheckViolation,
      );
      expect(await stage.balances()).toEqual({ stored: 1000, ledger: 1000 });
    });

    test("allow a withdrawal of what a call has just released, before that is written", async () => {
      const holds = await Promise.all(Array.from({ length: 10 }, () => billing.open(stage.call())));
      await billing.flush();
      for (const hold of holds) hold.settle(null);
      await stage.credit(-1000);
      expect(await stage.balances()).toEqual({ stored: 0, ledger: 0 });
      expect(await wrong()).toEqual([]);
    });

    test("add up what two processes spend", async () => {
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

    test("keep one row per process to identify its batches, which the next process removes", async () => {
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
