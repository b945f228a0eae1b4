import { afterEach, describe, expect, test } from "vitest";
import { RuntimeError } from "../runtime/container-runtime.ts";
import { containerName } from "../runtime/ownership.ts";
import { aDesiredState, aSpec, OWNER } from "../testing/builders.ts";
import { Machine } from "../testing/loop-harness.ts";
import { findServing } from "./serving.ts";

const v1 = aSpec({ image: "example/engine:1", specHash: "1".repeat(64) });
const v2 = aSpec({ image: "example/engine:2", specHash: "2".repeat(64) });
const name1 = containerName(OWNER.nodeId, v1);
const name2 = containerName(OWNER.nodeId, v2);
const wants = (generation: number, ...workloads: (typeof v1)[]) => aDesiredState({ generation, workloads });

let machine: Machine;
const start = (): Machine => {
  machine = new Machine();
  machine.runtime.addImage(v1.image);
  machine.runtime.addImage(v2.image);
  return machine;
};
afterEach(() => machine.stopDaemon());

const changesOf = async (milliseconds: number): Promise<string[]> => {
  const from = machine.runtime.changes.length;
  await machine.time.advance(milliseconds);
  return machine.runtime.changes.slice(from);
};
describe("updates", () => {
  test("stop-first: the old container ends before the new one starts, and is removed once that is ready", async () => {
    start().startDaemon(wants(1, v1));
    await machine.time.advance(10_000);
    machine.loop.desiredChanged(wants(2, v2));
    expect(await changesOf(10_000)).toEqual([`create ${name2}`, `stop ${name1}`, `start ${name2}`, `remove ${name1}`]);
  });

  test("start-first: the old container ends only after the new one is ready", async () => {
    const [a, b] = [v1, v2].map((spec) => ({ ...spec, update: "start-first" as const }));
    start().startDaemon(wants(1, a ?? v1));
    await machine.time.advance(10_000);
    machine.sick.add(v2.image);
    machine.loop.desiredChanged(wants(2, b ?? v2));
    expect(await changesOf(10_000)).toEqual([`create ${name2}`, `start ${name2}`]);
    machine.sick.clear();
    expect(await changesOf(10_000)).toEqual([`stop ${name1}`, `remove ${name1}`]);
  });

  test("start-first: running requests of the old container may finish", async () => {
    const [a, b] = [v1, v2].map((spec) => ({ ...spec, update: "start-first" as const }));
    start().startDaemon(wants(1, a ?? v1));
    await machine.time.advance(10_000);
    const end = machine.inFlight.begin(machine.runtime.byName(name1)?.id ?? "");
    machine.loop.desiredChanged(wants(2, b ?? v2));
    await machine.time.advance(20_000);
    expect(machine.running()).toEqual([name1, name2].toSorted());
    end();
    await machine.time.advance(3000);
    expect(machine.running()).toEqual([name2]);
  });

  test("a new container that does not start is rolled back, and the reason is reported", async () => {
    start().runtime.crashOnStart(v2.image, 1);
    machine.startDaemon(wants(1, v1));
    await machine.time.advance(10_000);
    machine.loop.desiredChanged(wants(2, v2));
    await machine.time.advance(600_000);
    expect(machine.running()).toEqual([name1]);
    expect(machine.runtime.changes.filter((change) => change === `start ${name2}`)).toHaveLength(1);
    expect(machine.snapshot?.records.get(name2)?.lastExit).toMatchObject({ code: 1 });
    const told = machine.events.filter((event) => event.startsWith("update_rolled_back"));
    expect(told).toEqual([
      `update_rolled_back: the update to ${name2} failed and is rolled back to ${name1}: exit code 1`,
    ]);
  });

  test("a rollback survives a daemon restart: the old container is not stopped for another attempt", async () => {
    start().startDaemon(wants(1, v1));
    await machine.time.advance(10_000);
    machine.runtime.failNext("start", new RuntimeError("rejected", "exec: no such file"));
    machine.loop.desiredChanged(wants(2, v2));
    await machine.time.advance(120_000);
    await machine.stopDaemon();
    machine.startDaemon(wants(2, v2));
    expect(await changesOf(600_000)).toEqual([]);
    expect(machine.running()).toEqual([name1]);
  });

  test("a node that was rolled back applies the next generation", async () => {
    start().runtime.crashOnStart(v2.image, 1);
    machine.startDaemon(wants(1, v1));
    await machine.time.advance(10_000);
    machine.loop.desiredChanged(wants(2, v2));
    await machine.time.advance(60_000);
    const v3 = { ...v1, image: "example/engine:3", specHash: "c".repeat(64) };
    machine.runtime.addImage(v3.image);
    machine.loop.desiredChanged(wants(3, v3));
    await machine.time.advance(60_000);
    expect(machine.running()).toEqual([containerName(OWNER.nodeId, v3)]);
    expect(machine.runtime.all()).toHaveLength(1);
  });

  test("start-first: a new container that never becomes ready is given up after three runs, and the old one never stops", async () => {
    const [a, b] = [v1, v2].map((spec) => ({ ...spec, update: "start-first" as const }));
    start().startDaemon(wants(1, a ?? v1));
    await machine.time.advance(10_000);
    machine.sick.add(v2.image);
    machine.loop.desiredChanged(wants(2, b ?? v2));
    const changes = await changesOf(3_600_000);
    expect(changes.filter((change) => change === `start ${name2}`)).toHaveLength(3);
    expect(changes.filter((change) => change.endsWith(name1))).toEqual([]);
    expect(machine.running()).toEqual([name1]);
    expect(machine.events.filter((event) => event.startsWith("update_rolled_back"))).toHaveLength(1);
  });

  test("stop-first: the old container receives no new requests, and stops after its running ones", async () => {
    start().startDaemon(wants(1, v1));
    await machine.time.advance(10_000);
    const end = machine.inFlight.begin(machine.runtime.byName(name1)?.id ?? "");
    machine.loop.desiredChanged(wants(2, v2));
    await machine.time.advance(20_000);
    expect(machine.running()).toEqual([name1]);
    expect(findServing(machine.snapshot, "engine")?.ready).toBe(false);
    end();
    await machine.time.advance(5000);
    expect(machine.running()).toEqual([name2]);
    expect(findServing(machine.snapshot, "engine")?.ready).toBe(true);
  });

  test("stop-first: a request that never ends delays an update by only half a minute", async () => {
    start().startDaemon(wants(1, v1));
    await machine.time.advance(10_000);
    machine.inFlight.begin(machine.runtime.byName(name1)?.id ?? "");
    machine.loop.desiredChanged(wants(2, v2));
    await machine.time.advance(29_000);
    expect(machine.running()).toEqual([name1]);
    await machine.time.advance(5000);
    expect(machine.running()).toEqual([name2]);
  });

  test("a new container that the container engine refuses to start is rolled back", async () => {
    start().startDaemon(wants(1, v1));
    await machine.time.advance(10_000);
    machine.runtime.failNext("start", new RuntimeError("rejected", "exec: no such file"));
    machine.loop.desiredChanged(wants(2, v2));
    await machine.time.advance(120_000);
    expect(machine.running()).toEqual([name1]);
    expect(machine.snapshot?.records.get(name2)?.lastExit?.reason).toBe("exec: no such file");
  });

  test("an image that cannot be pulled does no harm: the old container keeps serving", async () => {
    start().runtime.loseImage(v2.image);
    machine.startDaemon(wants(1, v1));
    await machine.time.advance(10_000);
    machine.loop.desiredChanged(wants(2, v2));
    await machine.time.advance(600_000);
    expect(machine.running()).toEqual([name1]);
    const failures = machine.events.filter((event) => event.startsWith("step_failed"));
    expect(failures.length).toBeGreaterThan(3);
    expect(failures.length).toBeLessThan(12);
    machine.runtime.registry.add(v2.image);
    await machine.time.advance(310_000);
    expect(machine.running()).toEqual([name2]);
  });

  test("a pull that is no longer wanted is cancelled", async () => {
    start().runtime.loseImage(v2.image);
    machine.runtime.pullGate = new Promise(() => undefined);
    machine.startDaemon(wants(1, v2));
    await machine.time.advance(1000);
    expect(machine.snapshot?.pulls).toEqual(new Map([[v2.image, 50]]));
    machine.loop.desiredChanged(wants(2, v1));
    await machine.time.advance(1000);
    expect(machine.snapshot?.running).toEqual([]);
    expect(machine.running()).toEqual([name1]);
  });

  test("an image that was removed between check and create is pulled (nomad#2184)", async () => {
    start().runtime.failNext("create", new RuntimeError("no-such-image", "no such image"));
    machine.startDaemon(wants(1, v1));
    await machine.time.advance(5000);
    expect(machine.running()).toEqual([name1]);
  });
});
