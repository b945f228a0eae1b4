import { TestClock } from "@fairlead/protocol/testing/test-clock";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { OpenedDatabase } from "../../installation/db/open.ts";
import { removeExpired } from "../../installation/process/retention.ts";
import type { OpenStore } from "../../testing.fixture.ts";
import { usageRetentions } from "../money-room.ts";
import { usageRecord } from "./usage.fixture.ts";
import {
  addSums,
  DAY_MS,
  HOUR_MS,
  hourOf,
  NOTHING_USED,
  sumsOf,
  USAGE_DIMENSIONS,
  type UsageDimension,
  type UsageGroup,
  type UsageRecord,
} from "./usage.ts";
import { UsageBatch } from "./usage-batch.ts";
import { UsageStore } from "./usage-store.ts";

const EVER = { from: 0, to: Date.UTC(2100, 0, 1) };
const PAGE = { after: null, limit: 10 };
const HOSTILE = `'); drop table usage_record; -- "quoted" <b>é</b> 🔑`;

export function usageStoreContract(name: string, open: OpenStore): void {
  describe(`the usage store on ${name}`, () => {
    let store: OpenedDatabase;
    let usage: UsageStore;
    beforeEach(async () => {
      store = await open();
      usage = new UsageStore(store.db);
    });
    afterEach(() => store.close());

    const write = async (...records: readonly UsageRecord[]): Promise<void> => {
      const batch = new UsageBatch();
      for (const record of records) batch.add(record);
      await store.writeTogether(usage.statements(batch));
    };
    const sumsBy = async (by: readonly UsageDimension[], range = EVER): Promise<readonly UsageGroup[]> =>
      (await usage.sums("prj_1", { ...range, by, page: { offset: 0, limit: 1000, most: 1000 } })).groups;
    const ids = async (filter: Parameters<UsageStore["list"]>[1], page = PAGE): Promise<string[]> =>
      (await usage.list("prj_1", filter, page)).map(({ id }) => id);

    test("returns what was stored", async () => {
      const nothing = usageRecord("usg_2", {
        keyId: null,
        userId: null,
        agentId: "agt_1",
        model: null,
        upstream: null,
        stream: false,
        outcome: "insufficient_balance",
        status: null,
        estimated: true,
        overheadMs: null,
        firstTokenMs: null,
      });
      const hostile = usageRecord("usg_1", { model: HOSTILE, cost: 9e15, inputTokens: 2 ** 40 });
      await write(hostile, nothing);
      expect(await usage.list("prj_1", {}, PAGE)).toEqual([nothing, hostile]);
    });

    test("lists only the project's calls, page by page, newest first", async () => {
      await write(
        usageRecord("usg_1"),
        usageRecord("usg_3"),
        usageRecord("usg_2"),
        usageRecord("usg_4", { projectId: "prj_2" }),
      );
      expect(await ids({}, { after: null, limit: 2 })).toEqual(["usg_3", "usg_2"]);
      expect((await usage.list("prj_1", {}, { after: "usg_2", limit: 2 })).map(({ id }) => id)).toEqual(["usg_1"]);
    });

    test("filters by time, key, agent, model and outcome in combination", async () => {
      await write(
        usageRecord("usg_1", { at: 1000 }),
        usageRecord("usg_2", { at: 2000, model: HOSTILE }),
        usageRecord("usg_3", { at: 3000, keyId: "key_2" }),
        usageRecord("usg_4", { at: 4000, outcome: "client_left", keyId: null, agentId: "agt_1" }),
      );
      expect(await ids({ model: HOSTILE })).toEqual(["usg_2"]);
      expect(await ids({ keyId: "key_1" })).toEqual(["usg_2", "usg_1"]);
      expect(await ids({ agentId: "agt_1" })).toEqual(["usg_4"]);
      expect(await ids({ agentId: "agt_1", keyId: "key_1" })).toEqual([]);
      expect(await ids({ outcome: "ok", from: 2000 })).toEqual(["usg_3", "usg_2"]);
      expect(await ids({ from: 1000, to: 3000 })).toEqual(["usg_2", "usg_1"]);
      expect(await ids({ keyId: "' or 1=1 --" })).toEqual([]);
    });

    test("adds up equal calls of one hour over any number of batches, and keeps others separate", async () => {
      const at = Date.UTC(2026, 0, 1, 10);
      await write(usageRecord("usg_1", { at }), usageRecord("usg_2", { at: at + HOUR_MS - 1, estimated: true }));
      await write(usageRecord("usg_3", { at }), usageRecord("usg_4", { at: at + HOUR_MS, model: null }));
      const three = { calls: 3, estimatedCalls: 1, inputTokens: 30, cachedInputTokens: 12, outputTokens: 15 };
      expect(await sumsBy(["hour", "model"])).toEqual(
        expect.arrayContaining([
          { values: [at, "attic/small"], sums: { ...three, reasoningTokens: 6, cost: 3702 } },
          { values: [at + HOUR_MS, null], sums: sumsOf(usageRecord("usg_4")) },
        ]),
      );
      expect(await sumsBy(["outcome"])).toMatchObject([{ values: ["ok"], sums: { calls: 4 } }]);
      expect(await store.db.selectFrom("usage_hour").select("calls").execute()).toHaveLength(2);
    });

    test("rejects a repeated batch as a whole, and no sum grows", async () => {
      await write(usageRecord("usg_1"));
      await expect(write(usageRecord("usg_1"), usageRecord("usg_2"))).rejects.toThrow();
      expect(await ids({})).toEqual(["usg_1"]);
      expect(await sumsBy(["user"])).toMatchObject([{ sums: { calls: 1 } }]);
    });

    test("pages groups by cost, and adds up what is on other pages and on none", async () => {
      const costs = [5, 9, 5, 1, 7, 3, 0];
      await write(...costs.map((cost, n) => usageRecord(`usg_${n}`, { model: `m/${n}`, cost })));
      const page = async (offset: number, most = 5) => {
        const query = { ...EVER, by: ["model"] as const, page: { offset, limit: 2, most } };
        const { groups, elsewhere, other, more } = await usage.sums("prj_1", query);
        const models = groups.toSorted((a, b) => b.sums.cost - a.sums.cost).map(({ values }) => values[0]);
        return { models, elsewhere: elsewhere.cost, other: other.cost, calls: other.calls, more };
      };
      expect(await page(0)).toEqual({ models: ["m/1", "m/4"], elsewhere: 13, other: 1, calls: 2, more: true });
      expect(await page(2)).toEqual({ models: ["m/0", "m/2"], elsewhere: 19, other: 1, calls: 2, more: true });
      expect(await page(4)).toEqual({ models: ["m/5"], elsewhere: 26, other: 1, calls: 2, more: false });
      expect(await page(6, 9)).toEqual({ models: ["m/6"], elsewhere: 30, other: 0, calls: 0, more: false });
    });

    test("keeps the hourly sums equal to the sums of the records, to the nano-dollar, for any calls", async () => {
      const begin = Date.UTC(2026, 1, 27, 22);
      const some = <T>(...of: T[]): fc.Arbitrary<T> => fc.constantFrom(...of);
      const calls = fc.record({
        at: fc.integer({ min: begin, max: begin + 3 * DAY_MS }),
        projectId: some("prj_1", "prj_1", "prj_2"),
        keyId: some("key_1", "key_2", null),
        userId: some("usr_1", null),
        agentId: some("agt_1", null),
        model: some("attic/small", HOSTILE, null),
        upstream: some("node:attic", "cloud", null),
        outcome: some("ok", "client_left"),
        estimated: fc.boolean(),
        inputTokens: fc.nat(1e9),
        cachedInputTokens: fc.nat(1e6),
        outputTokens: fc.nat(1e9),
        reasoningTokens: fc.nat(1e6),
        cost: fc.nat(1e12),
      });
      const cases = fc.tuple(
        fc.array(calls, { maxLength: 30 }),
        fc.subarray([...USAGE_DIMENSIONS], { minLength: 1 }),
        fc.nat(3 * 24),
      );
      let count = 0;
      await fc.assert(
        fc.asyncProperty(cases, async ([made, by, hours]) => {
          await store.db.deleteFrom("usage_record").execute();
          await store.db.deleteFrom("usage_hour").execute();
          const records = made.map((changes) => usageRecord(`usg_${count++}`, changes));
          await write(...records.slice(0, 12));
          await write(...records.slice(12));
          const range = { from: begin, to: begin + hours * HOUR_MS };
          const within = records.filter(
            ({ at, projectId }) => projectId === "prj_1" && at >= range.from && at < range.to,
          );
          const groups = await sumsBy(by, range);
          const told = new Map(groups.map(({ values, sums }) => [JSON.stringify(values), sums]));
          expect(told).toEqual(grouped(within, by));
        }),
        { numRuns: 60, seed: 20_261_128 },
      );
    });

    test("keeps records and sums for their configured days, and deletes both in batches", async () => {
      const clock = new TestClock();
      const now = clock.now();
      for (const days of [0, 1, 2, 3]) await write(usageRecord(`usg_${days}`, { at: now - days * DAY_MS }));
      const [records, sums] = usageRetentions({ longReads: store.db, usageDays: 1, usageSumsDays: 2, clock });
      expect(await records.removeSome(1)).toBe(1);
      expect(await removeExpired(records)).toBe(1);
      expect(await ids({})).toEqual(["usg_1", "usg_0"]);
      expect(await sums.removeSome(10)).toBe(1);
      expect(await sumsBy(["user"])).toMatchObject([{ sums: { calls: 3 } }]);
    });
  });
}

/** The same sums by plain means. */
function grouped(records: readonly UsageRecord[], by: readonly UsageDimension[]): Map<string, unknown> {
  const groups = new Map<string, typeof NOTHING_USED>();
  const valueOf: Readonly<Record<UsageDimension, (record: UsageRecord) => unknown>> = {
    day: ({ at }) => Date.parse(new Date(at).toISOString().slice(0, 10)),
    hour: ({ at }) => hourOf(at),
    model: ({ model }) => model,
    key: ({ keyId }) => keyId,
    user: ({ userId }) => userId,
    agent: ({ agentId }) => agentId,
    upstream: ({ upstream }) => upstream,
    outcome: ({ outcome }) => outcome,
  };
  for (const record of records) {
    const name = JSON.stringify(by.map((dimension) => valueOf[dimension](record)));
    groups.set(name, addSums(groups.get(name) ?? NOTHING_USED, sumsOf(record)));
  }
  return groups;
}
