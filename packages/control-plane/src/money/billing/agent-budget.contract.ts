import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { OpenedDatabase } from "../../installation/db/open.ts";
import type { OpenStore } from "../../testing.fixture.ts";
import { BillingStage, PROJECT, usageOf } from "./billing.fixture.ts";
import type { BillingService, PricedCall } from "./billing-service.ts";
import { BillingStore } from "./billing-store.ts";
import { STREAM_STEP_TOKENS } from "./hold.ts";
import { toLedgerEntry } from "./ledger.ts";

const AGENT = "agt_1";
const BUDGET = { total: 1000, daily: null, monthly: null };

/** Agents spend as keys do, by the same code; here what they are told, and that neither counts for the other. */
export function agentBudgetContract(name: string, open: OpenStore): void {
  describe(`an agent's budget on ${name}`, () => {
    let stage: BillingStage;
    let store: OpenedDatabase;
    let billing: BillingService;

    const service = (mode: "prepaid" | "off" = "prepaid"): BillingService => stage.process({ mode });
    const call = (change: Partial<PricedCall> = {}): PricedCall => stage.call({ budget: BUDGET, ...change });
    const spent = async (of: BillingService): Promise<number> => (await of.spenderAccount(AGENT)).spent("total");

    beforeEach(async () => {
      stage = new BillingStage(await open(), AGENT);
      ({ store, billing } = stage);
      await stage.credit(100_000);
    });
    afterEach(() => stage.close());

    test.each(["prepaid", "off"] as const)("is exact, whoever calls at the same time (billing %s)", async (mode) => {
      const asked = service(mode);
      const others = Array.from({ length: 30 }, () => asked.open(call({ spenderId: "key_1", budget: null })));
      const own = await Promise.allSettled(Array.from({ length: 30 }, () => asked.open(call())));
      const holds = own.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
      expect(holds).toHaveLength(10);
      await expect(asked.open(call())).rejects.toMatchObject({ code: "held_by_running_calls" });
      for (const hold of holds) hold.settle(usageOf(10, 90));
      for (const hold of await Promise.all(others)) hold.settle(usageOf(10, 90));
      expect(await spent(asked)).toBe(1000);
      await expect(asked.open(call())).rejects.toMatchObject({
        code: "agent_budget_exceeded",
        message: expect.stringContaining("of this agent's total budget of"),
        money: { leftNanoDollars: 0, heldNanoDollars: 0 },
      });
      await expect(asked.open(call({ spenderId: "key_1" }))).rejects.toMatchObject({ code: "key_budget_exceeded" });
      await expect(asked.open(call({ spenderId: "agt_2" }))).resolves.toBeDefined();
      await asked.close();
    });

    test("is exact after a crash during its calls", async () => {
      const budget = { ...BUDGET, total: 2000 };
      (await billing.open(call({ budget }))).settle(usageOf(10, 40));
      const stream = await billing.open(call({ budget, streamed: true, outputLimit: 5000 }));
      await billing.open(call({ budget }));
      // Surely with its caller when the next step was taken: the input and as many tokens.
      expect(stream.cover(STREAM_STEP_TOKENS)).toBeNull();
      await billing.flush();

      const next = service();
      expect(await next.recover()).toBe(2);
      const delivered = 10 + STREAM_STEP_TOKENS;
      expect(await spent(next)).toBe(50 + delivered);
      await next.flush();
      await next.close();
      const last = service();
      expect(await spent(last)).toBe(50 + delivered);
      const left = 2000 - 50 - delivered;
      await expect(last.open(call({ budget, inputTokens: left + 1, outputLimit: 0 }))).rejects.toMatchObject({
        code: "agent_budget_exceeded",
        money: { leftNanoDollars: left },
      });
      (await last.open(call({ budget, inputTokens: left, outputLimit: 0 }))).settle(usageOf(left, 0));
      expect(await spent(last)).toBe(2000);
      await last.close();
    });

    test("is recorded in the ledger under the agent's ID, and a key's under the key's ID", async () => {
      (await billing.open(call())).settle(usageOf(10, 10));
      (await billing.open(call({ spenderId: "key_1" }))).settle(usageOf(10, 10));
      (await billing.open(call({ spenderId: null, budget: null }))).settle(usageOf(10, 10));
      await billing.flush();
      const rows = await new BillingStore(store.db).list(PROJECT, { after: null, limit: 100 });
      const settled = rows.filter(({ kind }) => kind === "settle").map(toLedgerEntry);
      expect(settled.map(({ keyId, agentId }) => ({ keyId, agentId })).toReversed()).toEqual([
        { keyId: null, agentId: AGENT },
        { keyId: "key_1", agentId: null },
        { keyId: null, agentId: null },
      ]);
    });
  });
}
