import type { TestClock } from "@fairlead/protocol/testing/test-clock";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { OpenedDatabase } from "../../installation/db/open.ts";
import type { OpenStore } from "../../testing.fixture.ts";
import { BillingStage, PRICES, PROJECT, usageOf } from "./billing.fixture.ts";
import type { BillingService, PricedCall } from "./billing-service.ts";
import { BillingStore } from "./billing-store.ts";
import { STREAM_STEP_TOKENS } from "./hold.ts";
import type { BillingMode } from "./ledger.ts";
import { LedgerCheck } from "./ledger-check.ts";

export function billingServiceContract(name: string, open: OpenStore): void {
  describe(`billing on ${name}`, () => {
    let stage: BillingStage;
    let store: OpenedDatabase;
    let clock: TestClock;
    let billing: BillingService;

    const service = (mode: BillingMode = "prepaid"): BillingService => stage.process({ mode });
    const call = (change: Partial<PricedCall> = {}): PricedCall => stage.call(change);
    const credit = (amount: number): Promise<void> => stage.credit(amount);
    const balances = (): Promise<{ stored: number; ledger: number }> => stage.balances();

    beforeEach(async () => {
      stage = new BillingStage(await open());
      ({ store, clock, billing } = stage);
    });
    afterEach(() => stage.close());

    test("holds what a call may cost, and charges what it did cost", async () => {
      await credit(1000);
      const hold = await billing.open(call());
      expect(await balances()).toEqual({ stored: 900, ledger: 900 });
      expect(hold.settle(usageOf(10, 20))).toBe(30);
      expect(await balances()).toEqual({ stored: 970, ledger: 970 });
    });

    test("charges and counts usage that an upstream reports beyond the hold, but not estimated usage", async () => {
      await credit(10_000);
      const budget = { total: 1000, daily: null, monthly: null };
      const told = await billing.open(call({ budget }));
      expect(told.settle(usageOf(10, 190))).toBe(200);
      expect(stage.bounds.counts.get("call_cost")).toBe(1);
      const estimated = await billing.open(call({ budget }));
      expect(estimated.settle(usageOf(10, 190), PRICES, true)).toBe(100);
      expect(stage.bounds.counts.get("call_cost")).toBe(1);
    });

    test("holds from the start what no stream shows", async () => {
      await credit(10_000);
      const hold = await billing.open(call({ streamed: true, outputLimit: 2000, unseenTokens: 300 }));
      expect((await billing.account(PROJECT)).held).toBe(10 + 512 + 300);
      expect(hold.cover(400)).toBeNull();
      expect((await billing.account(PROJECT)).held).toBe(10 + 400 + 300 + 512);
      hold.settle(null);
    });

    test("counts a write once if its response was lost, even with billing off", async () => {
      await credit(1000);
      for (const mode of ["prepaid", "off"] as const) {
        let answers = 0;
        const losing = stage.process({
          mode,
          writeTogether: async (statements) => {
            await store.writeTogether(statements);
            if (++answers === 1) throw new Error("the answer was lost");
          },
        });
        const before = (await losing.spenderAccount("key_1")).spent("total");
        (await losing.open(call())).settle(usageOf(10, 20));
        await expect(losing.flush()).rejects.toThrow("lost");
        await losing.close();
        expect((await service().spenderAccount("key_1")).spent("total")).toBe(before + 30);
      }
      expect(await balances()).toEqual({ stored: 970, ledger: 970 });
    });

    test("charges nothing for a call that generated nothing", async () => {
      await credit(1000);
      expect((await billing.open(call())).settle(null)).toBe(0);
      expect(await balances()).toEqual({ stored: 1000, ledger: 1000 });
    });

    test("charges once if a call is settled twice", async () => {
      await credit(1000);
      const hold = await billing.open(call());
      hold.settle(usageOf(10, 20));
      expect(hold.settle(usageOf(10, 20))).toBe(0);
      expect(await balances()).toEqual({ stored: 970, ledger: 970 });
    });

    test("runs no more simultaneous calls than the balance covers", async () => {
      await credit(1000);
      const answers = await Promise.allSettled(Array.from({ length: 30 }, () => billing.open(call())));
      expect(answers.filter(({ status }) => status === "fulfilled")).toHaveLength(10);
      expect(await balances()).toEqual({ stored: 0, ledger: 0 });
    });

    test("distinguishes a balance held by running calls from an insufficient one", async () => {
      await credit(150);
      const hold = await billing.open(call());
      await expect(billing.open(call())).rejects.toMatchObject({
        code: "held_by_running_calls",
        message: expect.stringContaining("other calls in progress have reserved $0.0000001") as string,
      });
      await expect(billing.open(call({ outputLimit: 1000 }))).rejects.toMatchObject({
        code: "insufficient_balance",
        message: expect.stringContaining("needs up to $0.00000101; the project has $0.00000005 left") as string,
      });
      hold.settle(null);
      await expect(billing.open(call())).resolves.toBeDefined();
    });

    test("holds a stream in steps, and rejects a step that the balance does not cover", async () => {
      await credit(10 + STREAM_STEP_TOKENS + 500);
      const hold = await billing.open(call({ streamed: true, outputLimit: 1_000_000 }));
      expect(hold.cover(STREAM_STEP_TOKENS / 2)).toBeNull();
      expect((await balances()).stored).toBe(500);
      expect(hold.cover(STREAM_STEP_TOKENS / 2 + 100)).toBeNull();
      expect((await balances()).stored).toBe(144);
      expect(hold.cover(STREAM_STEP_TOKENS + 150)).toMatchObject({ code: "insufficient_balance" });
      expect(hold.settle(usageOf(10, STREAM_STEP_TOKENS + 150))).toBe(10 + STREAM_STEP_TOKENS + 150);
      expect(await balances()).toEqual({ stored: 350, ledger: 350 });
    });

    test("writes off usage beyond the whole balance, so that no balance is below zero", async () => {
      await credit(120);
      const hold = await billing.open(call());
      expect(hold.settle(usageOf(10, 500))).toBe(120);
      expect(await balances()).toEqual({ stored: 0, ledger: 0 });
    });

    test("does not treat a model without a price as free if payment is required", async () => {
      await credit(1000);
      await expect(billing.open(call({ prices: null }))).rejects.toMatchObject({ code: "not_configured" });
    });

    test("requires no balance with billing off, and still reports the cost of priced models", async () => {
      const off = service("off");
      expect((await off.open(call({ prices: null }))).settle(usageOf(10, 20))).toBe(0);
      expect((await off.open(call())).settle(usageOf(10, 20))).toBe(30);
      await off.close();
      expect(await balances()).toEqual({ stored: 0, ledger: 0 });
    });

    test("counts what a key has spent and what its running calls hold, until the budget resets", async () => {
      await credit(10_000);
      const budget = { total: null, daily: 250, monthly: null };
      (await billing.open(call({ budget }))).settle(usageOf(10, 90));
      const hold = await billing.open(call({ budget }));
      await expect(billing.open(call({ budget }))).rejects.toMatchObject({ code: "held_by_running_calls" });
      hold.settle(usageOf(10, 90));
      await expect(billing.open(call({ budget }))).rejects.toMatchObject({
        code: "key_budget_exceeded",
        message: expect.stringContaining("It resets at 2026-01-02T00:00:00.000Z.") as string,
      });
      await expect(billing.open(call({ budget, spenderId: "key_2" }))).resolves.toBeDefined();
      await billing.flush();
      clock.advance(24 * 3_600_000);
      await expect(billing.open(call({ budget }))).resolves.toBeDefined();
    });

    test("reports an exhausted budget to a stream that would exceed its key's budget on its own", async () => {
      await credit(10_000);
      const budget = { total: 600, daily: null, monthly: null };
      const hold = await billing.open(call({ budget, streamed: true, outputLimit: 5000 }));
      expect(hold.cover(400)).toMatchObject({
        code: "key_budget_exceeded",
        message: expect.stringContaining("more; of this key's total budget") as string,
      });
    });

    test("with billing off, needs no store for a key without a budget, and counts its spending later", async () => {
      const off = service("off");
      await store.db.schema.alterTable("spending").renameTo("away").execute();
      const lost = await off.open(call());
      lost.settle(usageOf(10, 20));
      await expect(off.spenderAccount("key_1")).rejects.toThrow();
      await store.db.schema.alterTable("away").renameTo("spending").execute();
      (await off.open(call())).settle(usageOf(10, 20));
      await off.spenderAccount("key_1");
      (await off.open(call())).settle(usageOf(10, 20));
      await off.close();
      expect((await service().spenderAccount("key_1")).spent("total")).toBe(60);
    });

    test("holds no money that is being withdrawn, and makes it available again if the withdrawal fails", async () => {
      await credit(1000);
      const change = { projectId: PROJECT, kind: "adjust", amount: -950, note: "" } as const;
      const taking = billing.change(change, (write) =>
        store.db.transaction().execute(async (transaction) => {
          await write(transaction);
          const refused = billing.open(call({ spenderId: null }));
          await expect(refused).rejects.toMatchObject({ code: "insufficient_balance" });
          throw new Error("no commit");
        }),
      );
      await expect(taking).rejects.toThrow("no commit");
      await expect(billing.open(call())).resolves.toBeDefined();
      expect(await balances()).toEqual({ stored: 900, ledger: 900 });
    });

    test("keeps every running total of the ledger at zero or above, even with a write-off", async () => {
      await credit(120);
      const hold = await billing.open(call());
      await credit(500);
      hold.settle(usageOf(10, 5000));
      await billing.flush();
      const rows = (await new BillingStore(store.db).list(PROJECT, { after: null, limit: 100 })).toReversed();
      let sum = 0;
      for (const { amount } of rows) expect((sum += amount)).toBeGreaterThanOrEqual(0);
      expect(rows.map(({ kind }) => kind)).toEqual(["credit", "hold", "credit", "release", "adjust", "settle"]);
      expect(sum).toBe(0);
    });

    test("verifies the ledger while calls are running, and finds inconsistencies", async () => {
      await credit(1000);
      const check = new LedgerCheck(store.maintenance);
      await billing.open(call());
      (await billing.open(call())).settle(usageOf(10, 20));
      await billing.flush();
      expect(await check.run()).toEqual({ projects: 1, entries: 5, wrong: [] });
      await store.db.updateTable("project_balance").set({ balance: 871 }).execute();
      await store.db.updateTable("open_hold").set({ held: 99 }).execute();
      const found = { balance: 871, sum: 870, lowest: 800, held: 100, openHolds: 99, chargedTwice: 0 };
      expect((await check.run()).wrong).toEqual([{ projectId: PROJECT, entries: 5, ...found }]);
    });

    test("counts a call that runs past midnight for the day on which it ends", async () => {
      await credit(10_000);
      const budget = { total: null, daily: 250, monthly: null };
      clock.advance(24 * 3_600_000 - 1);
      const hold = await billing.open(call({ budget }));
      clock.advance(1);
      hold.settle(usageOf(10, 90));
      expect((await billing.spenderAccount("key_1")).spent("2026-01-01")).toBe(0);
      expect((await billing.spenderAccount("key_1")).spent("2026-01-02")).toBe(100);
      await billing.flush();
      const next = service();
      expect((await next.spenderAccount("key_1")).spent("2026-01-02")).toBe(100);
      await next.close();
    });

    test("changes nothing while the store is unreachable, and lets nobody spend what may be gone", async () => {
      await credit(1000);
      await store.db.schema.alterTable("ledger_entry").renameTo("away").execute();
      await expect(credit(500)).rejects.toThrow();
      expect((await billing.account(PROJECT)).balance).toBe(1000);
      await expect(credit(-400)).rejects.toThrow();
      expect((await billing.account(PROJECT)).balance).toBe(600);
      await store.db.schema.alterTable("away").renameTo("ledger_entry").execute();
      await credit(500);
      expect(await balances()).toEqual({ stored: 1500, ledger: 1500 });
      expect((await service().account(PROJECT)).balance).toBe(1500);
    });

    test("lets a credit be spent even if the response to its commit was lost", async () => {
      const change = { projectId: PROJECT, kind: "credit", amount: 1000, note: "" } as const;
      const lost = billing.change(change, async (write) => {
        await store.db.transaction().execute(write);
        throw new Error("the answer was lost");
      });
      await expect(lost).rejects.toThrow("lost");
      expect((await billing.account(PROJECT)).balance).toBe(1000);
      const taken = billing.change({ ...change, kind: "adjust", amount: -400 }, async (write) => {
        await store.db.transaction().execute(write);
        throw new Error("the answer was lost");
      });
      await expect(taken).rejects.toThrow("lost");
      expect(await balances()).toEqual({ stored: 600, ledger: 600 });
      expect((await billing.account(PROJECT)).balance).toBe(600);
    });

    test("remembers after a restart what a key has spent", async () => {
      await credit(10_000);
      const budget = { total: 150, daily: null, monthly: null };
      (await billing.open(call({ budget }))).settle(usageOf(10, 90));
      await billing.flush();
      const next = service();
      await expect(next.open(call({ budget }))).rejects.toMatchObject({ code: "key_budget_exceeded" });
      await next.close();
    });

    test("reports each key's spending today, this month and in total immediately, and after a restart", async () => {
      await credit(1000);
      (await billing.open(call())).settle(usageOf(10, 20));
      await billing.flush();
      clock.advance(24 * 3_600_000);
      (await billing.open(call())).settle(usageOf(10, 10));
      const spent = new Map([
        ["key_1", { total: 50, daily: 20, monthly: 50 }],
        ["key_2", { total: 0, daily: 0, monthly: 0 }],
      ]);
      expect(await billing.spent(["key_1", "key_2"])).toEqual(spent);
      await billing.flush();
      const next = service();
      expect(await next.spent(["key_1", "key_2"])).toEqual(spent);
      clock.advance(31 * 24 * 3_600_000);
      expect((await next.spent(["key_1"])).get("key_1")).toEqual({ total: 50, daily: 0, monthly: 0 });
      expect(await next.spent([])).toEqual(new Map());
      await next.close();
    });

    test("releases holds after a crash, less what their callers certainly received", async () => {
      await credit(10_000);
      await billing.open(call());
      const stream = await billing.open(call({ streamed: true, outputLimit: 5000 }));
      stream.cover(400);
      await billing.flush();
      const next = service();
      expect(await next.recover()).toBe(2);
      expect(await next.recover()).toBe(0);
      expect((await next.account(PROJECT)).balance).toBe(10_000 - 410);
      expect(await balances()).toEqual({ stored: 9590, ledger: 9590 });
      await next.close();
    });

    test("keeps the sum of the ledger equal to the balance and never below zero, whatever calls do", async () => {
      const step = fc.record({
        credit: fc.integer({ min: 0, max: 500 }),
        streamed: fc.boolean(),
        outputLimit: fc.integer({ min: 1, max: 3000 }),
        generated: fc.option(fc.integer({ min: 0, max: 4000 }), { nil: null }),
        settles: fc.boolean(),
      });
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 15 }), async (steps) => {
          for (const { credit: amount, streamed, outputLimit, generated, settles } of steps) {
            if (amount > 0) await credit(amount);
            const hold = await billing.open(call({ streamed, outputLimit })).catch(() => null);
            if (generated !== null) hold?.cover(generated);
            if (settles) hold?.settle(generated === null ? null : usageOf(10, generated));
            expect((await billing.account(PROJECT)).balance).toBeGreaterThanOrEqual(0);
          }
          const { stored, ledger } = await balances();
          expect(stored).toBe(ledger);
          expect(stored).toBe((await billing.account(PROJECT)).balance);
        }),
        { numRuns: 15 },
      );
    });

    test("while the store accepts no writes, admits no call; settled calls are written afterwards", async () => {
      await credit(1000);
      const hold = await billing.open(call());
      await billing.flush();
      await store.db.schema.alterTable("ledger_entry").renameTo("away").execute();
      hold.settle(usageOf(10, 20));
      await expect(billing.flush()).rejects.toThrow();
      await expect(billing.open(call())).rejects.toMatchObject({ code: "unavailable", retryAfterSeconds: 1 });
      await store.db.schema.alterTable("away").renameTo("ledger_entry").execute();
      expect(await balances()).toEqual({ stored: 970, ledger: 970 });
      await expect(billing.open(call())).resolves.toBeDefined();
    });
  });
}
