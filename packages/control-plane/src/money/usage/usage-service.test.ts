import { TestClock } from "@fairlead/protocol/testing/test-clock";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ProjectAccess } from "../../access/auth/access.ts";
import type { OpenedDatabase } from "../../installation/db/open.ts";
import { asUser, fixedMemberships, STORES } from "../../testing.fixture.ts";
import { usageRecord } from "./usage.fixture.ts";
import { addSums, HOUR_MS, NOTHING_USED, sumsOf, type UsageRecord } from "./usage.ts";
import { UsageBatch } from "./usage-batch.ts";
import { type UsageReport, UsageService } from "./usage-service.ts";
import { UsageStore } from "./usage-store.ts";

const PAGE = { after: null, limit: 10 };

describe.each(STORES)("a project's usage on $name", ({ open }) => {
  const clock = new TestClock();
  const vic = asUser("usr_vic");
  let store: OpenedDatabase;
  let usage: UsageService;

  beforeEach(async () => {
    store = await open();
    const roleOf = (projectId: string, userId: string): "viewer" | null =>
      projectId === "prj_1" && userId === "usr_vic" ? "viewer" : null;
    const access = new ProjectAccess(fixedMemberships(roleOf));
    usage = new UsageService({ usage: new UsageStore(store.longReads), access, clock });
  });
  afterEach(() => store.close());

  const write = async (records: readonly UsageRecord[]): Promise<void> => {
    const batch = new UsageBatch();
    for (const record of records) batch.add(record);
    await store.writeTogether(new UsageStore(store.db).statements(batch));
  };
  const at = clock.now() - 5 * HOUR_MS;

  test("is readable by every member, and hidden from strangers", async () => {
    await write([usageRecord("usg_1", { at })]);
    expect(await usage.sums(vic, "prj_1", { by: ["day"] })).toMatchObject({ totals: { calls: 1 } });
    expect(await usage.calls(vic, "prj_1", { page: PAGE })).toHaveLength(1);
    for (const ask of [
      usage.sums(vic, "prj_2", { by: ["day"] }),
      usage.calls(asUser("usr_x"), "prj_1", { page: PAGE }),
    ]) {
      await expect(ask).rejects.toMatchObject({ code: "not_found" });
    }
  });

  test("is returned in order, days and hours ascending, and its totals are the sum of its groups", async () => {
    await write([
      usageRecord("usg_1", { at, model: "b" }),
      usageRecord("usg_2", { at: at - 48 * HOUR_MS, model: "c", estimated: true }),
      usageRecord("usg_3", { at, model: "a", cost: 1 }),
      usageRecord("usg_4", { at, model: null, outcome: "rate_limit_exceeded", cost: 0 }),
    ]);
    const { groups, totals } = await usage.sums(vic, "prj_1", { by: ["hour", "model"] });
    expect(groups.map(({ values }) => values)).toEqual([
      [at - 48 * HOUR_MS, "c"],
      [at, null],
      [at, "a"],
      [at, "b"],
    ]);
    expect(totals).toEqual(groups.reduce((sum, { sums }) => addSums(sum, sums), NOTHING_USED));
    expect(totals).toMatchObject({ calls: 4, estimatedCalls: 1, cost: 2469 });
  });

  test("is zero without calls", async () => {
    expect(await usage.sums(vic, "prj_1", { by: ["model"] })).toMatchObject({ totals: NOTHING_USED, groups: [] });
  });

  test("is paged if it has many groups, most expensive first, and every sum is exact", async () => {
    const cost = (n: number): number => (n * 7919) % 6000;
    const records = Array.from({ length: 5600 }, (_, n) =>
      usageRecord(`usg_${n}`, { at, model: `m/${n}`, cost: cost(n) }),
    );
    for (let n = 0; n < records.length; n += 200) await write(records.slice(n, n + 200));
    const expected = records.reduce((sum, record) => addSums(sum, sumsOf(record)), NOTHING_USED);
    const pages: UsageReport[] = [];
    for (let place: UsageReport["next"] | undefined; place !== null; ) {
      const page: UsageReport = await usage.sums(vic, "prj_1", { by: ["model"], place });
      pages.push(page);
      // What is asked for later is of the same time.
      clock.advance(HOUR_MS);
      place = page.next;
    }
    expect(pages.map(({ groups }) => groups.length)).toEqual(Array.from({ length: 10 }, () => 500));
    for (const { totals, from, to } of pages) {
      expect({ totals, from, to }).toEqual({ totals: expected, from: pages[0]?.from, to: pages[0]?.to });
    }
    expect(pages.map(({ other }) => other?.calls)).toEqual(
      [600, ...Array.from({ length: 9 })].map((calls) => calls ?? undefined),
    );
    const groups = pages.flatMap((page) => page.groups);
    expect(new Set(groups.map(({ values }) => values[0])).size).toBe(5000);
    const listed = groups.reduce((sum, { sums }) => addSums(sum, sums), NOTHING_USED);
    expect(addSums(listed, pages[0]?.other ?? NOTHING_USED)).toEqual(expected);
    const costs = pages.map((page) => page.groups.map(({ sums }) => sums.cost));
    for (const [n, later] of costs.slice(1).entries()) {
      expect(Math.min(...(costs[n] ?? []))).toBeGreaterThanOrEqual(Math.max(...later));
    }
  });

  test("has a single page and no remainder for up to 500 groups", async () => {
    await write(Array.from({ length: 500 }, (_, n) => usageRecord(`usg_${n}`, { at, model: `m/${n}` })));
    const { groups, other, next } = await usage.sums(vic, "prj_1", { by: ["model"] });
    expect([groups.length, other, next]).toEqual([500, null, null]);
  });

  test("is rejected for an invalid time", async () => {
    await expect(usage.sums(vic, "prj_1", { from: at, to: at - HOUR_MS, by: ["day"] })).rejects.toMatchObject({
      code: "invalid_request",
      param: "from",
    });
  });
});
