import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ProjectAccess } from "../auth/access.ts";
import type { OpenedDatabase } from "../db/open.ts";
import { asUser, fixedMemberships, STORES, TestClock } from "../testing.fixture.ts";
import { usageRecord } from "./usage.fixture.ts";
import { addSums, HOUR_MS, NOTHING_USED, type UsageRecord } from "./usage.ts";
import { UsageBatch } from "./usage-batch.ts";
import { UsageService } from "./usage-service.ts";
import { UsageStore } from "./usage-store.ts";

const PAGE = { after: null, limit: 10 };

describe.each(STORES)("what a project has used, on $name", ({ open }) => {
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

  test("is read by everybody in the project, and there is none for strangers", async () => {
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

  test("is told in order, days and hours first to last, and its totals are the sum of its groups", async () => {
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

  test("of a project that has called nothing is nothing", async () => {
    expect(await usage.sums(vic, "prj_1", { by: ["model"] })).toMatchObject({ totals: NOTHING_USED, groups: [] });
  });

  test("is refused for a time that is none, and where it would make too many groups", async () => {
    await expect(usage.sums(vic, "prj_1", { from: at, to: at - HOUR_MS, by: ["day"] })).rejects.toMatchObject({
      code: "invalid_request",
      param: "from",
    });
    await write(Array.from({ length: 501 }, (_, n) => usageRecord(`usg_${n}`, { at, model: `m/${n}` })));
    await expect(usage.sums(vic, "prj_1", { by: ["model"] })).rejects.toMatchObject({ param: "groupBy" });
    expect(await usage.sums(vic, "prj_1", { by: ["key"] })).toMatchObject({ totals: { calls: 501 } });
  });
});
