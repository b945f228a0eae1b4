import type { WorkloadReport } from "@fairlead/protocol/workload";
import { afterEach, describe, expect, test } from "vitest";
import { findServing } from "../reconcile/serving.ts";
import { RuntimeError } from "../runtime/container-runtime.ts";
import { containerName } from "../runtime/ownership.ts";
import { aDesiredState, anAgent, aSpec, OWNER } from "../testing/builders.ts";
import { Machine } from "../testing/loop-harness.ts";
import { buildReports } from "./workload-report.ts";

const v1 = aSpec({ image: "example/engine:1", specHash: "1".repeat(64), update: "start-first" });
const v2 = aSpec({ image: "example/engine:2", specHash: "2".repeat(64), update: "start-first" });
const name1 = containerName(OWNER.nodeId, v1);
const wants = (generation: number, ...workloads: (typeof v1)[]) => aDesiredState({ generation, workloads });

let machine: Machine;
const start = (): Machine => {
  machine = new Machine();
  machine.runtime.addImage(v1.image, { repoDigests: ["example/engine@sha256:d1"] });
  machine.runtime.addImage(v2.image);
  return machine;
};
afterEach(() => machine.stopDaemon());

const report = (): WorkloadReport => {
  const snapshot = machine.snapshot;
  const [first] = snapshot ? buildReports(snapshot) : [];
  if (first === undefined) throw new Error("no report");
  return first;
};

test("a ready workload reports what is really running", async () => {
  start().startDaemon(wants(4, v1));
  await machine.time.advance(1000);
  expect(report()).toEqual({
    workloadId: "wkl_engine",
    workloadType: "WORKLOAD_TYPE_ENGINE",
    ready: true,
    state: "running",
    version: "1",
    image: v1.image,
    imageDigest: "sha256:d1",
    generation: 4,
    models: ["tiny"],
    startedAt: expect.stringMatching(/^\d{4}-.*Z$/),
    restartCount: 0,
    lastExit: null,
    message: "",
    progress: null,
  });
  expect(findServing(machine.snapshot, "engine")).toMatchObject({ container: { name: name1 }, ready: true });
  expect(findServing(machine.snapshot, "other")).toBeNull();
});

test("an agent that cannot reach the platform says why, even though it runs", async () => {
  start().networkRules = { ready: async () => undefined, noWay: (id) => (id === "wkl_engine" ? "no gateway" : null) };
  machine.startDaemon(wants(1, v1));
  await machine.time.advance(1000);
  expect(report()).toMatchObject({ ready: true, message: "cannot reach the platform: no gateway" });
});

test("an image that is being pulled: pulling, with the progress", async () => {
  start().runtime.loseImage(v1.image);
  machine.runtime.pullGate = new Promise(() => undefined);
  machine.startDaemon(wants(1, v1));
  await machine.time.advance(1000);
  expect(report()).toMatchObject({ ready: false, state: "pulling", message: `pulling ${v1.image}: 50 %` });
});

test("an image that no registry has: backing off, with the registry's message", async () => {
  start().runtime.loseImage(v1.image);
  machine.startDaemon(wants(1, v1));
  await machine.time.advance(1000);
  expect(report()).toMatchObject({
    state: "backing-off",
    message: `cannot pull ${v1.image}: ${v1.image} was not found`,
  });
  await machine.time.advance(10_000);
  expect(report().message).toBe(`cannot pull ${v1.image}: ${v1.image} was not found (3 attempts)`);
});

test("an update that cannot proceed says how to cancel it", async () => {
  start().startDaemon(wants(1, v1));
  await machine.time.advance(1000);
  const cancel = `to cancel the update, set the image back: fairlead node update ${OWNER.nodeId} --image ${v1.image}`;
  machine.runtime.loseImage(v2.image);
  machine.loop.desiredChanged(wants(2, v2));
  await machine.time.advance(1000);
  expect(report()).toMatchObject({
    ready: true,
    message: `the update (generation 2) is in progress; cannot pull ${v2.image}: ${v2.image} was not found; ${cancel}`,
  });
  machine.loop.desiredChanged(wants(3, v1));
  await machine.time.advance(1000);
  expect(report()).toMatchObject({ ready: true, message: "" });
});

test.each([
  { before: anAgent({ image: v1.image }), changes: { image: v2.image }, advice: `set its image back to ${v1.image}` },
  { before: v1, changes: { image: v1.image }, advice: "undo the config change" },
])("an update of more than an engine's image says how to cancel it: $advice", async ({ before, changes, advice }) => {
  start().startDaemon(wants(1, before));
  await machine.time.advance(5000);
  machine.runtime.failNext("create", new RuntimeError("unavailable", "away"));
  machine.loop.desiredChanged(wants(2, { ...before, ...changes, specHash: "9".repeat(64), update: "start-first" }));
  await machine.time.advance(500);
  expect(report().message).toContain(`; to cancel the update, ${advice}`);
});

test("a container that the container engine does not start: the reason, and the number of attempts", async () => {
  start().startDaemon(null);
  for (let call = 0; call < 2; call++)
    machine.runtime.failNext("start", new RuntimeError("rejected", 'the command "x" was not found in the image'));
  machine.loop.desiredChanged(wants(1, v1));
  await machine.time.advance(1000);
  expect(report().message).toBe('cannot start: the command "x" was not found in the image (1 attempt)');
  await machine.time.advance(15_000);
  expect(report().message).toBe('cannot start: the command "x" was not found in the image (2 attempts)');
});

test("a crash loop: backing off, with the last exit", async () => {
  start().runtime.crashOnStart(v1.image, 3);
  machine.startDaemon(wants(1, v1));
  await machine.time.advance(5000);
  expect(report()).toMatchObject({
    ready: false,
    state: "backing-off",
    restartCount: 1,
    lastExit: { code: 3, reason: "exit code 3" },
    message: "exited with code 3 twice in a row",
  });
});

test("an engine that is starting: with what is not right yet", async () => {
  start().sick.add(v1.image);
  machine.startDaemon(wants(1, v1));
  await machine.time.advance(3000);
  expect(report()).toMatchObject({ ready: false, state: "starting", message: "answered 500" });
});

test("a name that is not ours: failed, with the remedy", async () => {
  start().runtime.plant({ name: name1, state: "running" });
  machine.startDaemon(wants(1, v1));
  await machine.time.advance(1000);
  expect(report()).toMatchObject({
    ready: false,
    state: "failed",
    message: expect.stringContaining("remove or rename it"),
  });
});

test("an unavailable container engine: unknown, and a serving container keeps serving", async () => {
  start().startDaemon(wants(1, v1));
  await machine.time.advance(1000);
  machine.runtime.available = false;
  await machine.time.advance(60_000);
  expect(report()).toMatchObject({
    ready: true,
    state: "unknown",
    message: expect.stringContaining("does not respond"),
  });
  expect(findServing(machine.snapshot, "engine")?.ready).toBe(true);
});

test("nothing observed yet: not ready, without a guess", async () => {
  start().runtime.available = false;
  machine.startDaemon(wants(1, v1));
  await machine.time.advance(1000);
  expect(report()).toMatchObject({ ready: false, state: "unknown", imageDigest: "" });
});

test("during an update the report describes the serving container, under its own generation", async () => {
  start().startDaemon(wants(1, v1));
  await machine.time.advance(1000);
  machine.sick.add(v2.image);
  machine.loop.desiredChanged(wants(2, v2));
  await machine.time.advance(5000);
  expect(report()).toMatchObject({
    ready: true,
    state: "running",
    image: v1.image,
    generation: 1,
    message: "the update (generation 2) is in progress; answered 500",
  });
  expect(findServing(machine.snapshot, "engine")?.container.name).toBe(name1);
  machine.sick.clear();
  await machine.time.advance(5000);
  expect(report()).toMatchObject({ ready: true, image: v2.image, generation: 2, message: "" });
  expect(findServing(machine.snapshot, "engine")?.container.name).toBe(containerName(OWNER.nodeId, v2));
});

test("a new generation with an unchanged container is reported immediately", async () => {
  start().startDaemon(wants(1, v1));
  await machine.time.advance(1000);
  machine.loop.desiredChanged(wants(9, v1));
  await machine.time.advance(0);
  expect(report()).toMatchObject({ ready: true, generation: 9 });
});

test("an update that was rolled back says why", async () => {
  const [a, b] = [v1, v2].map((spec) => ({ ...spec, update: "stop-first" as const }));
  start().runtime.crashOnStart(v2.image, 1);
  machine.startDaemon(wants(1, a ?? v1));
  await machine.time.advance(1000);
  machine.loop.desiredChanged(wants(2, b ?? v2));
  await machine.time.advance(10_000);
  expect(report()).toMatchObject({
    ready: true,
    image: v1.image,
    generation: 1,
    message: "the update (generation 2) failed and was undone: exit code 1",
  });
});

describe("an agent that is no longer wanted", () => {
  const agent = anAgent();
  const told = (left: readonly string[] = []) => {
    const { snapshot } = machine;
    const reports = snapshot === null ? [] : buildReports(snapshot, new Set(left));
    return reports.map(({ workloadId, ready, state, generation }) => [workloadId, ready, state, generation]);
  };
  const running = async (): Promise<void> => {
    start().runtime.addImage(agent.image);
    machine.startDaemon(wants(1, v1, agent));
    await machine.time.advance(1000);
    expect(told()).toEqual([
      ["wkl_engine", true, "running", 1],
      ["agt_one", true, "running", 1],
    ]);
  };

  test("is reported until its container is gone, so that it starts nowhere else before then", async () => {
    await running();
    machine.runtime.failNext("stop", new RuntimeError("rejected", "it does not end"));
    machine.loop.desiredChanged(wants(2, v1));
    await machine.time.advance(100);
    expect(told()[1]).toEqual(["agt_one", false, "stopping", 2]);
    expect(machine.snapshot && buildReports(machine.snapshot)[1]?.message).toContain("it does not end");
    await machine.time.advance(10_000);
    expect(told()).toEqual([["wkl_engine", true, "running", 2]]);
    expect(machine.runtime.all()).toHaveLength(1);
  });

  test("is unknown while the container engine is unavailable, even if an earlier daemon left it behind", async () => {
    await running();
    machine.loop.desiredChanged(wants(2, v1));
    machine.runtime.available = false;
    await machine.time.advance(1000);
    expect(told()[1]).toEqual(["agt_one", false, "unknown", 2]);
    await machine.stopDaemon();
    machine.startDaemon(wants(2, v1));
    await machine.time.advance(1000);
    expect(told(["agt_one"])[1]).toEqual(["agt_one", false, "unknown", 2]);
    machine.runtime.available = true;
    await machine.time.advance(30_000);
    expect(told(["agt_one"])).toEqual([["wkl_engine", true, "running", 2]]);
  });

  test("is reported, while an engine's container is just removed", async () => {
    start().startDaemon(wants(1, v1));
    await machine.time.advance(1000);
    machine.loop.desiredChanged(wants(2));
    await machine.time.advance(1000);
    expect(told()).toEqual([]);
  });
});
