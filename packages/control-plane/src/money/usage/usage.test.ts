import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { usageRecord } from "./usage.fixture.ts";
import { DAY_MS, HOUR_MS, sumsOf, toUsageCall, toUsageGroup, wholeHours } from "./usage.ts";

const noon = Date.UTC(2026, 2, 2, 12, 17, 3);

describe("a time span of usage", () => {
  test("defaults to thirty days that end with today (UTC), including the current hour", () => {
    expect(wholeHours({}, noon)).toEqual({ from: Date.UTC(2026, 1, 1), to: Date.UTC(2026, 2, 2, 13) });
    expect(wholeHours({}, Date.UTC(2026, 2, 2))).toEqual({ from: Date.UTC(2026, 1, 1), to: Date.UTC(2026, 2, 2, 1) });
  });

  test("without a start begins thirty days before its end", () => {
    const to = Date.UTC(2026, 0, 31);
    expect(wholeHours({ to }, noon)).toEqual({ from: Date.UTC(2026, 0, 1), to });
  });

  test("consists of whole hours that contain the requested time, with at most an hour around it", () => {
    const moment = fc.integer({ min: 0, max: 4e12 });
    fc.assert(
      fc.property(moment, moment, (from, to) => {
        const range = wholeHours({ from, to }, noon);
        expect([range.from % HOUR_MS, range.to % HOUR_MS]).toEqual([0, 0]);
        expect(from - range.from).toBeGreaterThanOrEqual(0);
        expect(from - range.from).toBeLessThan(HOUR_MS);
        expect(range.to - to).toBeGreaterThanOrEqual(0);
        expect(range.to - to).toBeLessThan(HOUR_MS);
      }),
    );
  });
});

describe("usage in responses", () => {
  test("names groups by their grouping fields, and days without a time", () => {
    const sums = sumsOf(usageRecord("usg_1", { estimated: true }));
    const values = [noon - (noon % DAY_MS), noon - (noon % HOUR_MS), "key_1", null];
    expect(toUsageGroup(["day", "hour", "key", "agent"], { values, sums })).toEqual({
      day: "2026-03-02",
      hour: "2026-03-02T12:00:00.000Z",
      keyId: "key_1",
      agentId: null,
      calls: 1,
      estimatedCalls: 1,
      inputTokens: 10,
      cachedInputTokens: 4,
      outputTokens: 5,
      reasoningTokens: 2,
      costNanoDollars: 1234,
    });
  });

  test("omits the record's own ID and the project", () => {
    const told = toUsageCall(usageRecord("usg_1"));
    expect(told).toMatchObject({ requestId: "req_usg_1", at: "2026-01-01T10:30:00.000Z", costNanoDollars: 1234 });
    expect(Object.keys(told)).not.toEqual(expect.arrayContaining(["id"]));
  });
});
