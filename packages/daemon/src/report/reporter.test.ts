import type { Observation } from "@fairlead/protocol/daemon-link";
import { type ReadyRequest, WORKLOAD_TYPE_AGENT, type WorkloadReport } from "@fairlead/protocol/workload";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { CallRejected, type LinkConnection } from "../link/control-link.ts";
import { PlatformError } from "../link/platform-answer.ts";
import { FakeControlPlane } from "../testing/fake-control-plane.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { silentLog } from "../testing/silent-log.ts";
import { Reporter } from "./reporter.ts";

let time: FakeTime;
let controlPlane: FakeControlPlane;
let reporter: Reporter;
let ready: ReadyRequest[];
let refusals: Error[];
/** All reports, in order of arrival. */
let said: string[];

beforeEach(() => {
  time = new FakeTime();
  controlPlane = new FakeControlPlane();
  ready = [];
  refusals = [];
  said = [];
  reporter = new Reporter({
    nodeId: "nod_1",
    operatingSystem: "Test 1",
    callReady: async (request) => {
      const refusal = refusals.shift();
      if (refusal) throw refusal;
      ready.push(request);
      said.push("ready");
    },
    timers: time,
    random: () => 0.5,
    log: silentLog,
  });
});
afterEach(() => reporter.close());

const connect = async (): Promise<LinkConnection> => {
  const connection = await controlPlane.connect(new AbortController().signal);
  return { ...connection, observe: (picture) => connection.observe(picture).then(() => void said.push("observe")) };
};

function picture(isReady: boolean, changes: Partial<WorkloadReport> = {}, generation = 1): Observation {
  const report: WorkloadReport = {
    workloadId: "wkl_1",
    workloadType: "WORKLOAD_TYPE_ENGINE",
    ready: isReady,
    state: isReady ? "running" : "starting",
    version: "1",
    image: "i",
    imageDigest: "sha256:d",
    generation,
    models: [],
    startedAt: null,
    restartCount: 0,
    lastExit: null,
    message: "",
    ...changes,
  };
  return { epoch: "e", generation, workloadReports: [report] };
}

test("ready is called once all workloads are ready, and not before", async () => {
  reporter.update(picture(false));
  await time.advance(1000);
  expect(ready).toEqual([]);
  reporter.update(picture(true, { generation: 1 }, 1));
  await time.advance(1000);
  expect(ready).toMatchObject([{ id: "nod_1", operatingSystem: "Test 1", workerImageDigest: "sha256:d" }]);
});

test("an older generation that serves is sent in both reports, even by a new daemon: its update may be rolled back", async () => {
  reporter.attach(await connect());
  reporter.update({ ...picture(true), generation: 2 });
  await time.advance(1000);
  expect(said).toEqual(["observe", "ready"]);
  expect(ready).toMatchObject([{ workloadReports: [{ generation: 1, ready: true }] }]);
});

test("after the first call every change is reported, including a workload that fails", async () => {
  reporter.update(picture(true));
  await time.advance(1000);
  reporter.update(picture(false, { restartCount: 1 }));
  await time.advance(1000);
  reporter.update(picture(true, { restartCount: 1 }));
  await time.advance(1000);
  expect(ready.map((request) => request.workloadReports[0]?.ready)).toEqual([true, false, true]);
});

test("a condition that changes is sent over the link, and causes no ready call", async () => {
  reporter.attach(await connect());
  reporter.update(picture(true));
  await time.advance(1000);
  const clock = { type: "clock", status: "problem", reason: "clock_skew", message: "", since: "" } as const;
  reporter.update({ ...picture(true), conditions: [clock] });
  await time.advance(1000);
  expect(said).toEqual(["observe", "ready", "observe"]);
});

test("a change of the message alone causes no ready call", async () => {
  reporter.update(picture(true));
  await time.advance(1000);
  reporter.update(picture(true, { message: "pulling: 10 %" }));
  await time.advance(1000);
  expect(ready).toHaveLength(1);
});

test("ready is called until it succeeds", async () => {
  refusals = Array.from({ length: 5 }, () => new Error("connection refused"));
  reporter.update(picture(true));
  await time.advance(120_000);
  expect(ready.length).toBeGreaterThan(0);
});

test("a permanent error ends the repeats until there is something else to report", async () => {
  refusals = [new PlatformError({ status: 400, headers: {}, text: "" })];
  reporter.update(picture(true));
  await time.advance(30_000);
  expect(ready).toEqual([]);
  reporter.update(picture(true, { restartCount: 1 }));
  await time.advance(1000);
  expect(ready).toHaveLength(1);
});

test("the ready call is sent even without a link", async () => {
  reporter.update(picture(true));
  await time.advance(1000);
  expect(said).toEqual(["ready"]);
});

test("a link that opens receives everything again, the observation before the ready call", async () => {
  reporter.update(picture(true));
  await time.advance(1000);
  reporter.attach(await connect());
  await time.advance(1000);
  expect(said).toEqual(["ready", "observe", "ready"]);
});

test("observations are sent only on change, and a burst becomes one", async () => {
  reporter.attach(await connect());
  for (let percent = 0; percent < 100; percent++) reporter.update(picture(false, { message: `${percent} %` }));
  await time.advance(2000);
  expect(controlPlane.received.observations.length).toBeLessThanOrEqual(2);
  expect(controlPlane.received.observations.at(-1)?.workloadReports[0]?.message).toBe("99 %");
});

test("everything is repeated at long intervals, so that a lost message does not matter", async () => {
  reporter.attach(await connect());
  reporter.update(picture(true));
  await time.advance(60_000);
  expect(said).toEqual(["observe", "ready"]);
  await time.advance(10 * 60_000);
  expect(said).toEqual(["observe", "ready", "observe", "ready"]);
});

test("a failed observation is sent again", async () => {
  reporter.attach(await connect());
  controlPlane.failNextCall();
  reporter.update(picture(false));
  await time.advance(5000);
  expect(controlPlane.received.observations).toHaveLength(1);
});

test("a busy control plane is retried at the time that it asked for, however much changes meanwhile", async () => {
  const connection = await connect();
  const times: number[] = [];
  const observe: LinkConnection["observe"] = async (told) => {
    times.push(time.monotonic());
    if (times.length === 1) throw new CallRejected("busy", "too many", 20_000);
    await connection.observe(told);
  };
  reporter.attach({ ...connection, observe });
  for (let n = 0; n < 15; n++) {
    reporter.update(picture(false, { message: `${n}` }));
    await time.advance(1000);
  }
  expect(times).toHaveLength(1);
  await time.advance(10_000);
  expect(times[1]).toBeGreaterThanOrEqual(20_000);
  expect(controlPlane.received.observations.at(-1)?.workloadReports[0]?.message).toBe("14");
});

test("closing ends all reporting", async () => {
  refusals = Array.from({ length: 100 }, () => new Error("down"));
  reporter.update(picture(true));
  await time.advance(1000);
  await reporter.close();
  const left = refusals.length;
  await time.advance(600_000);
  expect(refusals).toHaveLength(left);
});

describe("agents beside the engine", () => {
  const beside = (agent: Partial<WorkloadReport>): Observation => {
    const { workloadReports, ...rest } = picture(true);
    const [engine] = workloadReports;
    if (engine === undefined) throw new Error("no engine");
    const theirs = { workloadId: "agt_1", workloadType: WORKLOAD_TYPE_AGENT, imageDigest: "sha256:a" } as const;
    return { ...rest, workloadReports: [{ ...engine, ...theirs, ...agent }, engine] };
  };

  test("are not waited for and are reported with it, and the reported image is the engine's", async () => {
    reporter.attach(await connect());
    reporter.update(beside({ ready: false, state: "pulling" }));
    await time.advance(1000);
    expect(said).toEqual(["observe", "ready"]);
    expect(ready).toMatchObject([
      { workloadReports: [{ workloadId: "agt_1", ready: false }, { ready: true }], workerImageDigest: "sha256:d" },
    ]);
  });
});
