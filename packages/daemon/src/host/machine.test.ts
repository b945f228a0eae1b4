import { afterEach, beforeEach, expect, test } from "vitest";
import type { LoopSnapshot } from "../reconcile/loop.ts";
import { MemoryRuntime } from "../runtime/memory-runtime.ts";
import { aDesiredState, aSpec } from "../testing/builders.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { MemoryFiles } from "../testing/memory-files.ts";
import { silentLog } from "../testing/silent-log.ts";
import { type HostMachine, startMachine } from "./machine.ts";

let time: FakeTime;
let runtime: MemoryRuntime;
let files: MemoryFiles;
let machine: HostMachine;
let changes: number;
let skew: number | null;
const desired = aDesiredState({ workloads: [aSpec({ resources: { gpus: 64 } })] });

const start = (): Promise<HostMachine> =>
  startMachine({
    runtime,
    files,
    stateDir: "/state",
    registryAuth: async () => null,
    skewMs: () => skew,
    now: () => time.now(),
    desired: () => desired,
    clock: time,
    timers: time,
    log: silentLog,
    onEvent: () => undefined,
    onConditions: () => (changes += 1),
  });
const found = async (type: string, reason: string): Promise<void> => {
  // Reading the disk and GPUs is not faked and takes real time.
  await expect.poll(() => machine.board.list().find((condition) => condition.type === type)?.reason).toBe(reason);
};
const snapshot = (away: string | null): LoopSnapshot => ({
  desired,
  observed: null,
  away,
  records: new Map(),
  health: () => ({ state: "starting", detail: "", version: "", models: [] }),
  running: [],
  draining: new Set(),
  pulls: new Map(),
  failures: () => [],
  missingSecrets: () => [],
  noWay: () => null,
  now: 0,
});

beforeEach(async () => {
  time = new FakeTime();
  runtime = new MemoryRuntime(time);
  files = new MemoryFiles();
  changes = 0;
  skew = 0;
  machine = await start();
});
afterEach(() => machine.close());

test("a machine is checked from the start, and then every half minute", async () => {
  await found("clock", "");
  skew = 90_000;
  // A check may be running: advance time until the next one has finished.
  await expect
    .poll(async () => {
      await time.advance(30_000);
      return machine.board.list().find(({ type }) => type === "clock")?.reason;
    })
    .toBe("clock_skew");
  expect(changes).toBeGreaterThan(1);
});

test("an unavailable container engine is reported immediately, and so is its return", async () => {
  machine.observed(snapshot("the socket is gone"));
  await found("docker", "unavailable");
  machine.observed(snapshot(null));
  await found("docker", "");
});

test("GPUs that a workload requests and this machine lacks are reported", async () => {
  await expect.poll(() => machine.board.list().find(({ type }) => type === "gpu")?.status).toBe("problem");
});

test("a pulled image is remembered across a restart", async () => {
  runtime.addImage("example/engine:1");
  machine.pulls.onPulled("example/engine:1", "wkl_engine");
  await time.advance(0);
  await machine.close();
  expect(await files.read("/state/pulled-images.json")).toContain("sha256:example/engine:1");
});
