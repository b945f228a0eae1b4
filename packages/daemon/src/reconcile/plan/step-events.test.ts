import { describe, expect, it } from "vitest";
import { NO_RUNS } from "./run-record.ts";
import { eventOf, newlyReady } from "./step-events.ts";
import type { StopReason } from "./steps.ts";

const ON = { workloadId: "w", containerId: "c", name: "box-engine-1" };
const FAILED = {
  ...NO_RUNS,
  failures: 2,
  lastExit: { code: 137, reason: "out of memory", at: "2026-01-01T00:00:00Z" },
};

describe("the event of a step", () => {
  it("says why a container is restarted, and gives no reason for its first start", () => {
    expect(eventOf({ type: "start", ...ON }, NO_RUNS).message).toBe("started box-engine-1");
    expect(eventOf({ type: "start", ...ON }, FAILED)).toEqual({
      kind: "workload_started",
      message: "started box-engine-1 again; the last run exited: out of memory",
    });
  });

  it.each<[StopReason, string]>([
    ["unhealthy", "unhealthy: /health answered 503"],
    ["superseded", "replaced by another container of the workload"],
    ["rolled-back", "the update was rolled back"],
    ["orphan", "no longer wanted"],
  ])("says why a container was stopped: %s", (reason, why) => {
    const record = { ...NO_RUNS, stopping: { reason, detail: "unhealthy: /health answered 503" } };
    expect(eventOf({ type: "stop", ...ON, reason }, record).message).toBe(`stopped box-engine-1: ${why}`);
  });
});

it("a container is reported as ready once for each time that it was not ready", () => {
  const ready = { ...NO_RUNS, readySince: 5 };
  expect(newlyReady(new Map(), new Map([["a", ready]]))).toEqual(["a"]);
  expect(newlyReady(new Map([["a", ready]]), new Map([["a", ready]]))).toEqual([]);
  expect(newlyReady(new Map([["a", ready]]), new Map([["a", NO_RUNS]]))).toEqual([]);
  expect(newlyReady(new Map([["a", NO_RUNS]]), new Map([["a", ready]]))).toEqual(["a"]);
});
