import { conditionSchema } from "@fairlead/protocol/conditions";
import type { DesiredState } from "@fairlead/protocol/workload";
import { describe, expect, test } from "vitest";
import { aDesiredState, aSpec } from "../testing/builders.ts";
import { ConditionBoard } from "./condition-board.ts";
import { clockFinding, diskFinding, dockerFinding, gpuFinding, memoryFinding, OK } from "./condition-rules.ts";
import { bytesToFree, floorOf, isUnderPressure, roomProblem } from "./disk-rules.ts";

const GIB = 1024 ** 3;
const disk = (usedPercent: number, total = 100) => ({
  totalBytes: total * GIB,
  freeBytes: (total - (total * usedPercent) / 100) * GIB,
});

describe("the disk", () => {
  test("is under pressure from 85 % until it is below 80 %", () => {
    expect([84.9, 85, 99].map((used) => isUnderPressure(disk(used), false))).toEqual([false, true, true]);
    expect([79.9, 80, 84].map((used) => isUnderPressure(disk(used), true))).toEqual([false, true, true]);
    expect(diskFinding(disk(91), null, false)).toEqual({
      status: "problem",
      reason: "disk_pressure",
      message: "the disk is 91 % full, 9.0 GiB free",
    });
    expect(diskFinding(disk(82), null, false)).toEqual(OK);
  });

  test("is cleaned from the upper mark down to the lower one", () => {
    expect(bytesToFree(disk(84))).toBe(0);
    expect(bytesToFree(disk(90))).toBe(10 * GIB);
  });

  test("keeps 1 GiB free, or 5 % if it is small", () => {
    expect(floorOf(disk(0, 100))).toBe(GIB);
    expect(floorOf(disk(0, 10))).toBe(GIB / 2);
    expect(roomProblem(disk(98), 0)).toBeNull();
    expect(roomProblem(disk(98), 2 * GIB)).toBe(
      "too little disk space: 2.0 GiB free, 2.0 GiB pending, 1.0 GiB must stay free",
    );
    expect(roomProblem(disk(99.5), 0)).toBe("too little disk space: 512 MiB free, 1.0 GiB must stay free");
  });

  test("reports a rejected pull before anything else, and is unknown when it cannot be read", () => {
    expect(diskFinding(disk(10), "too little", false)).toMatchObject({ status: "problem", reason: "no_room" });
    expect(diskFinding(null, null, false)).toMatchObject({ status: "unknown" });
  });
});

test("a clock that is off by half a minute is a problem, and is unknown before the platform has responded", () => {
  expect(clockFinding(null).status).toBe("unknown");
  expect([30_000, -30_000].map((skew) => clockFinding(skew))).toEqual([OK, OK]);
  expect(clockFinding(3_600_400)).toMatchObject({
    reason: "clock_skew",
    message: "the clock is 3600 s ahead of the platform's",
  });
  expect(clockFinding(-31_000).message).toBe("the clock is 31 s behind the platform's");
});

test("an unavailable container engine is a problem, reported in its own words", () => {
  expect(dockerFinding(null)).toEqual(OK);
  expect(dockerFinding("no such socket")).toEqual({
    status: "problem",
    reason: "unavailable",
    message: "no such socket",
  });
});

describe("GPUs", () => {
  const asking = (gpus: "all" | number | string[]): DesiredState =>
    aDesiredState({ workloads: [aSpec({ resources: { gpus } })] });
  const two = {
    state: "present",
    gpus: [
      { id: "GPU-aa11", name: "L4", memoryMb: 1 },
      { id: "GPU-bb22", name: "L4", memoryMb: 1 },
    ],
  } as const;

  test("matter only if a workload requests one", () => {
    for (const desired of [null, aDesiredState(), asking(0)]) {
      expect(gpuFinding({ state: "broken", reason: "x" }, desired)).toEqual(OK);
    }
  });

  test("that are requested and present are OK: all, some, by ID, by ID prefix, by index", () => {
    for (const gpus of ["all", 2, ["GPU-bb22"], ["GPU-bb"], ["0", "1"]] as const) {
      expect(gpuFinding(two, asking(gpus as "all"))).toEqual(OK);
    }
  });

  test.each([
    [{ state: "absent" } as const, "all" as const, "no_driver", /nvidia-smi is not installed/],
    [{ state: "broken", reason: "driver mismatch" } as const, 1, "driver_failed", /driver mismatch/],
    [two, 3, "missing_gpus", /requires 3 GPUs, but there are 2/],
    [two, ["GPU-cc", "0"], "missing_gpus", /requires GPU-cc, but/],
    [{ state: "present", gpus: [] } as const, "all" as const, "missing_gpus", /there are 0/],
  ])("that are missing are a problem: %j for %j", (...[reading, gpus, reason, message]) => {
    const finding = gpuFinding(reading, asking(gpus as "all"));
    expect(finding).toMatchObject({ status: "problem", reason });
    expect(finding.message).toMatch(message);
  });
});

describe("the condition board", () => {
  const board = () => {
    const events: string[] = [];
    let changes = 0;
    let time = 0;
    const made = new ConditionBoard({
      time: () => `t${++time}`,
      onEvent: (kind, _workloadId, message) => events.push(`${kind} ${message}`),
      onChange: () => (changes += 1),
    });
    return { made, events, changes: () => changes };
  };
  const full = { status: "problem", reason: "disk_pressure", message: "91 %" } as const;

  test("reports a change of state once, also as an event, with the time it began", () => {
    const { made, events, changes } = board();
    made.set("disk", OK);
    made.set("disk", full);
    made.set("disk", full);
    made.set("disk", { ...full, message: "92 %" });
    expect(made.list()).toEqual([{ type: "disk", ...full, message: "92 %", since: "t2" }]);
    made.set("disk", OK);
    expect(events).toEqual(["condition_problem disk: 91 %", "condition_ok disk: ok"]);
    expect(changes()).toBe(4);
  });

  test("cuts messages to the length that the control plane accepts", () => {
    const { made } = board();
    made.set("secrets", { status: "problem", reason: "missing_secrets", message: "x".repeat(5000) });
    expect(conditionSchema.parse(made.list()[0])).toEqual(made.list()[0]);
  });

  test("creates no event for a condition that is OK from the start, but one for a problem", () => {
    const { made, events } = board();
    made.set("clock", OK);
    made.set("gpu", { status: "problem", reason: "no_driver", message: "none" });
    expect(events).toEqual(["condition_problem gpu: none"]);
    expect(made.list().map(({ type }) => type)).toEqual(["clock", "gpu"]);
  });
});

describe("the memory", () => {
  const limited = aSpec({ resources: { memoryMb: 512 } });

  test("has a warning while a workload has no limit, which names the workload", () => {
    expect(memoryFinding(null)).toEqual(OK);
    expect(memoryFinding(aDesiredState({ workloads: [limited] }))).toEqual(OK);
    expect(memoryFinding(aDesiredState({ workloads: [limited, aSpec({ name: "agent-1" })] }))).toEqual({
      status: "warning",
      reason: "no_memory_limit",
      message: "resources.memoryMb is not set for agent-1",
    });
  });

  test("names at most ten workloads in a message", () => {
    const workloads = Array.from({ length: 256 }, (_, index) => aSpec({ name: `agent-${index}`.padEnd(40, "x") }));
    const { message } = memoryFinding(aDesiredState({ workloads }));
    expect(message).toContain("and 246 more");
    expect(message.length).toBeLessThan(1024);
  });
});
