import type { CallEnd } from "@fairlead/inference/calls/inference-call";
import { asAgent, asKey } from "@fairlead/inference/testing/callers";
import { countingIds, TestClock } from "@fairlead/protocol/testing/test-clock";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { UsageRecord } from "./usage.ts";
import type { HourSums, UsageBatch } from "./usage-batch.ts";
import { UsageRecorder } from "./usage-recorder.ts";

const AWAY = new Error("the store is away");
const end: CallEnd = {
  id: "req_1",
  caller: asKey("prj_1"),
  dialect: "chat",
  outcome: "ok",
  status: 200,
  stream: true,
  model: "attic/small",
  upstreamId: "node:attic",
  usage: { inputTokens: 10, cachedInputTokens: 4, outputTokens: 5, reasoningTokens: 2 },
  estimated: false,
  cost: 1234,
  attempts: 2,
  overheadMs: 0.4,
  firstTokenMs: 96,
  durationMs: 1840,
};

describe("usage records", () => {
  const clock = new TestClock();
  let written: (readonly UsageRecord[])[];
  let sums: (readonly HourSums[])[];
  let fault: Error | null;
  let recorder: UsageRecorder;

  beforeEach(() => {
    vi.useFakeTimers();
    written = [];
    sums = [];
    fault = null;
    let batch: UsageBatch | null = null;
    recorder = new UsageRecorder({
      usage: {
        statements: (given) => {
          batch = given;
          return [];
        },
      },
      writeTogether: async () => {
        if (fault !== null) throw fault;
        written.push([...(batch?.records ?? [])]);
        sums.push(batch?.hours() ?? []);
      },
      clock,
      ids: countingIds(),
      log: pino({ level: "silent" }),
    });
  });
  afterEach(() => void vi.useRealTimers());

  test("are written together, with everything known of a call and nothing else", async () => {
    recorder.record(end);
    recorder.record({ ...end, id: "req_2", usage: null, model: null, upstreamId: null, status: null, cost: 0 });
    await vi.advanceTimersByTimeAsync(100);
    expect(written).toHaveLength(1);
    const [first, second] = written[0] ?? [];
    expect(first).toEqual({
      id: expect.stringMatching(/^usg_/),
      projectId: "prj_1",
      requestId: "req_1",
      at: clock.now(),
      keyId: "key_1",
      userId: "usr_1",
      agentId: null,
      model: "attic/small",
      upstream: "node:attic",
      dialect: "chat",
      stream: true,
      outcome: "ok",
      status: 200,
      inputTokens: 10,
      cachedInputTokens: 4,
      outputTokens: 5,
      reasoningTokens: 2,
      estimated: false,
      cost: 1234,
      attempts: 2,
      overheadMs: 0.4,
      firstTokenMs: 96,
      durationMs: 1840,
    });
    expect(second).toMatchObject({ model: null, upstream: null, inputTokens: 0, outputTokens: 0 });
    expect(second?.id).not.toBe(first?.id);
  });

  test("name the agent or the member if no key was used", async () => {
    recorder.record({ ...end, caller: asAgent("prj_1") });
    recorder.record({ ...end, caller: { kind: "member", userId: "usr_2", projectId: "prj_1" } });
    await recorder.flush();
    expect(written[0]).toMatchObject([
      { keyId: null, userId: null, agentId: "agt_1" },
      { keyId: null, userId: "usr_2", agentId: null },
    ]);
  });

  test("accept any model name from a caller, and keep one that every store can hold", async () => {
    recorder.record({ ...end, model: `a/\0\n\ud800'; drop table "usage_record" -- ${"🔑".repeat(5000)}` });
    await recorder.flush();
    const [record] = written[0] ?? [];
    expect(record?.model).toMatch(/^a\/\ufffd\ufffd\ufffd'; drop table "usage_record" -- 🔑+\ufffd?$/u);
    expect(record?.model).toHaveLength(300);
  });

  test("wait for an unreachable store, and are written once each", async () => {
    fault = AWAY;
    recorder.record(end);
    await vi.advanceTimersByTimeAsync(100);
    recorder.record({ ...end, id: "req_2" });
    await vi.advanceTimersByTimeAsync(1000);
    fault = null;
    await vi.advanceTimersByTimeAsync(1000);
    expect(written.flat().map(({ requestId }) => requestId)).toEqual(["req_1", "req_2"]);
    expect(recorder.dropped).toBe(0);
  });

  describe("of calls rejected before any upstream was called", () => {
    const refused: CallEnd = {
      ...end,
      outcome: "rate_limit_exceeded",
      status: null,
      upstreamId: null,
      usage: null,
      cost: 0,
      attempts: 0,
    };
    const counted = (): number =>
      sums.reduce((sum, hours) => sum + hours.reduce((calls, each) => calls + each.sums.calls, 0), 0);

    test("are written at most once a minute for each caller and code, and all calls count in the sums", async () => {
      for (let n = 0; n < 1000; n++) {
        recorder.record({ ...refused, id: `req_a${n}` });
        recorder.record({ ...refused, id: `req_b${n}`, outcome: "insufficient_balance" });
        recorder.record({ ...refused, id: `req_c${n}`, caller: asAgent("prj_1") });
      }
      await vi.advanceTimersByTimeAsync(100);
      expect(written.flat().map(({ requestId }) => requestId)).toEqual(["req_a0", "req_b0", "req_c0"]);
      recorder.record(end);
      await vi.advanceTimersByTimeAsync(100);
      expect(written.flat()).toHaveLength(4);
      expect(counted()).toBe(3001);
      clock.advance(60_000);
      recorder.record({ ...refused, id: "req_later" });
      await recorder.flush();
      expect(written.flat().at(-1)).toMatchObject({ requestId: "req_later" });
    });

    test("count in the sums within a minute without other calls, and no batch is without a record", async () => {
      for (let n = 0; n < 10; n++) recorder.record({ ...refused, id: `req_${n}` });
      await vi.advanceTimersByTimeAsync(60_100);
      expect(counted()).toBe(10);
      expect(written.map((batch) => batch.length)).toEqual([1, 1]);
    });

    test("count in the sums when the server stops", async () => {
      for (let n = 0; n < 10; n++) recorder.record({ ...refused, id: `req_${n}` });
      await recorder.close();
      expect(counted()).toBe(10);
    });

    test("are written for every call if an upstream was called", async () => {
      for (let n = 0; n < 3; n++) recorder.record({ ...refused, outcome: "upstream_failed", attempts: 1 });
      await recorder.flush();
      expect(written.flat()).toHaveLength(3);
    });
  });

  test("are limited in number while the store is unreachable, and lost ones are counted", async () => {
    fault = AWAY;
    const many = 60_000;
    for (let n = 0; n < many; n++) recorder.record(end);
    fault = null;
    await recorder.flush();
    expect(recorder.dropped).toBe(10_000);
    expect(written.flat()).toHaveLength(many - recorder.dropped);
  });

  test("are written completely when the server stops, which an unreachable store does not delay", async () => {
    recorder.record(end);
    await recorder.close();
    expect(written.flat()).toHaveLength(1);
    fault = AWAY;
    recorder.record(end);
    await expect(recorder.close()).resolves.toBeUndefined();
  });
});
