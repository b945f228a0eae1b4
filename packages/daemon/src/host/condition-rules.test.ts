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
  test("is under pressure from 85 % on, until it is under 80 %", () => {
    expect([84.9, 85, 99].map((used) => isUnderPressure(disk(used), false))).toEqual([false, true, true]);
    expect([79.9, 80, 84].map((used) => isUnderPressure(disk(used), true))).toEqual([false, true, true]);
    expect(diskFinding(disk(91), null, false)).toEqual({
      status: "problem",
      reason: "disk_pressure",
      message: "the disk is 91 % full, 9.0 GiB free",
    });
    expect(diskFinding(disk(82), null, false)).toEqual(OK);
  });

  test("is to be cleaned from the upper mark down to the lower one", () => {
    expect(bytesToFree(disk(84))).toBe(0);
    expect(bytesToFree(disk(90))).toBe(10 * GIB);
  });

  test("keeps 1 GiB free, a small one 5 %", () => {
    expect(floorOf(disk(0, 100))).toBe(GIB);
    expect(floorOf(disk(0, 10))).toBe(GIB / 2);
    expect(roomProblem(disk(98), 0)).toBeNull();
    expect(roomProblem(disk(98), 2 * GIB)).toBe(
      "too little disk space: 2.0 GiB free, 2.0 GiB pending, 1.0 GiB must stay free",
    );
    expect(roomProblem(disk(99.5), 0)).toBe("too little disk space: 512 MiB free, 1.0 GiB must stay free");
  });

  test("a refused pull is told above all else, and what cannot be read is unknown", () => {
    expect(diskFinding(disk(10), "too little", false)).toMatchObject({ status: "problem", reason: "no_room" });
    expect(diskFinding(null, null, false)).toMatchObject({ status: "unknown" });
  });
});

test("a clock is a problem from half a minute on, and unknown before the platform was heard", () => {
  expect(clockFinding(null).status).toBe("unknown");
  expect([30_000, -30_000].map((skew) => clockFinding(skew))).toEqual([OK, OK]);
  expect(clockFinding(3_600_400)).toMatchObject({
    reason: "clock_skew",
    message: "the clock is 3600 s ahead of the platform's",
  });
  expect(clockFinding(-31_000).message).toBe("the clock is 31 s behind the platform's");
});

test("a container engine that is away is a problem, in its own words", () => {
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

  test("matter only where a workload asks for one", () => {
    for (const desired of [null, aDesiredState(), asking(0)]) {
      expect(gpuFinding({ state: "broken", reason: "x" }, desired)).toEqual(OK);
    }
  });

  test("that are asked for and there are well: all, some, by id, by the start of an id, by index", () => {
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
  ])("that are not there are a problem: %j for %j", (...[reading, gpus, reason, message]) => {
    const finding = gpuFinding(reading, asking(gpus as "all"));
    expect(finding).toMatchObject({ status: "problem", reason });
    expect(finding.message).toMatch(message);
  });
});

describe("the board", () => {
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

  test("tells a change of state once, as an event too, and since when", () => {
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

  test("cuts what a room has to say to what the control plane takes", () => {
    const { made } = board();
    made.set("secrets", { status: "problem", reason: "missing_secrets", message: "x".repeat(5000) });
    expect(conditionSchema.parse(made.list()[0])).toEqual(made.list()[0]);
  });

  test("a machine that is well from the start is no news, one that is not is", () => {
    const { made, events } = board();
    made.set("clock", OK);
    made.set("gpu", { status: "problem", reason: "no_driver", message: "none" });
    expect(events).toEqual(["condition_problem gpu: none"]);
    expect(made.list().map(({ type }) => type)).toEqual(["clock", "gpu"]);
  });
});

describe("the memory", () => {
  const limited = aSpec({ resources: { memoryMb: 512 } });

  test("is warned of while a workload has no limit, by name", () => {
    expect(memoryFinding(null)).toEqual(OK);
    expect(memoryFinding(aDesiredState({ workloads: [limited] }))).toEqual(OK);
    expect(memoryFinding(aDesiredState({ workloads: [limited, aSpec({ name: "agent-1" })] }))).toEqual({
      status: "warning",
      reason: "no_memory_limit",
      message: "resources.memoryMb is not set for agent-1",
    });
  });

  test("a message names at most ten", () => {
    const workloads = Array.from({ length: 256 }, (_, index) => aSpec({ name: `agent-${index}`.padEnd(40, "x") }));
    const { message } = memoryFinding(aDesiredState({ workloads }));
    expect(message).toContain("and 246 more");
    expect(message.length).toBeLessThan(1024);
  });
});
