import { TestClock } from "@fairlead/protocol/testing/test-clock";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type NodeAspect, NodeChangeFeed } from "../nodes/node-change-feed.ts";
import { startMachineRunner } from "./machine-runner.ts";

type Step = (nodeId: string) => Promise<number | null>;

const POLL_MS = 60_000;
/** Longer than the runner leaves between two looks. */
const LOOK_MS = 1000;

describe("the machine runner", () => {
  let clock: TestClock;
  let changes: NodeChangeFeed;
  let open: string[];
  let steps: string[];
  let lines: string[];
  let step: Step;
  let stop: () => Promise<void>;

  beforeEach(() => {
    vi.useFakeTimers();
    clock = new TestClock();
    changes = new NodeChangeFeed();
    open = [];
    steps = [];
    lines = [];
    step = async () => POLL_MS;
    stop = async () => undefined;
  });
  afterEach(async () => {
    await stop();
    vi.useRealTimers();
  });

  /** @param find what finds the open ones */
  async function start(find: () => Promise<string[]> = async () => open): Promise<void> {
    const advance: Step = (nodeId) => {
      steps.push(nodeId);
      return step(nodeId);
    };
    const log = pino({}, { write: (line: string) => void lines.push(line) });
    stop = startMachineRunner({ machines: { open: find }, provisioning: { advance }, changes, clock, log });
    await pass(0);
  }

  async function pass(milliseconds: number): Promise<void> {
    clock.advance(milliseconds);
    await vi.advanceTimersByTimeAsync(milliseconds);
  }

  const change = (nodeId: string, aspect: NodeAspect): void => changes.emit({ nodeId, projectId: "prj_1", aspect });

  test("resumes all open machines at startup, and picks up later ones", async () => {
    open = ["nod_1", "nod_2"];
    await start();
    expect(steps).toEqual(["nod_1", "nod_2"]);
    open.push("nod_3");
    await pass(LOOK_MS);
    expect(steps).toEqual(["nod_1", "nod_2", "nod_3"]);
  });

  test("waits before the next step as long as the last one says, if at all", async () => {
    open = ["nod_1"];
    const waits = [0, 0, POLL_MS];
    // As every real one it takes a while.
    step = () => new Promise((resolve) => setTimeout(() => resolve(waits.shift() ?? POLL_MS), 10));
    await start();
    await pass(100);
    expect(steps).toHaveLength(3);
    await pass(POLL_MS - LOOK_MS);
    expect(steps).toHaveLength(3);
    await pass(2 * LOOK_MS);
    expect(steps).toHaveLength(4);
  });

  test("does not wait when the node changes; a report of its daemon is not such a change", async () => {
    open = ["nod_1"];
    await start();
    change("nod_1", "report");
    change("nod_2", "status");
    await pass(LOOK_MS);
    expect(steps).toHaveLength(1);
    change("nod_1", "removed");
    await pass(LOOK_MS);
    expect(steps).toHaveLength(2);
  });

  test("runs one step per node at a time, and a limited number of nodes concurrently", async () => {
    open = Array.from({ length: 40 }, (_, index) => `nod_${index}`);
    const ends: (() => void)[] = [];
    step = () => new Promise((resolve) => ends.push(() => resolve(POLL_MS)));
    await start();
    await pass(LOOK_MS);
    const first = [...steps];
    expect(first.length).toBeGreaterThan(1);
    expect(first.length).toBeLessThan(open.length);
    while (steps.length < open.length) {
      expect(ends.length).toBeGreaterThan(0);
      for (const end of ends.splice(0)) end();
      await pass(LOOK_MS);
    }
    expect(new Set(steps).size).toBe(open.length);
    for (const end of ends) end();
  });

  test("survives a failing step, logs its node, and retries later", async () => {
    open = ["nod_1"];
    step = () => Promise.reject(new Error("the store is away"));
    await start();
    expect(lines.join()).toMatch(/"nodeId":"nod_1".*a machine's step failed/);
    step = async () => null;
    await pass(LOOK_MS);
    expect(steps).toHaveLength(1);
    await pass(10_000);
    expect(steps).not.toHaveLength(1);
  });

  test("survives a store that is unavailable when it looks for open machines", async () => {
    open = ["nod_1"];
    let asked = 0;
    await start(async () => {
      asked += 1;
      if (asked === 1) throw new Error("the store is away");
      return open;
    });
    expect(steps).toEqual([]);
    expect(lines.join()).toContain("looking for open machines failed");
    await pass(LOOK_MS);
    expect(steps).toEqual(["nod_1"]);
  });

  test("stops after the running step, and starts no other", async () => {
    open = ["nod_1"];
    let end = (): void => undefined;
    step = () => new Promise((resolve) => (end = () => resolve(0)));
    await start();
    let ended = false;
    const ending = stop().then(() => (ended = true));
    await pass(LOOK_MS);
    expect(ended).toBe(false);
    end();
    await ending;
    change("nod_1", "status");
    await pass(POLL_MS);
    expect(steps).toEqual(["nod_1"]);
  });
});
