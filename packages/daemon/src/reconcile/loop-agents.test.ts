import type { DesiredState, WorkloadSpec } from "@fairlead/protocol/workload";
import { afterEach, beforeEach, expect, test } from "vitest";
import { containerName } from "../runtime/ownership.ts";
import { aDesiredState, anAgent, aSpec, OWNER } from "../testing/builders.ts";
import { Machine } from "../testing/loop-harness.ts";
import { findServing } from "./serving.ts";

const engine = aSpec({ specHash: "e".repeat(64) });
const agent = anAgent({ specHash: "a".repeat(64) });
const next = { engine: version(engine), agent: version(agent) };

/** The next version of a workload. */
function version(of: WorkloadSpec): WorkloadSpec {
  return { ...of, image: of.image.replace(":1", ":2"), specHash: of.specHash.replace(/^./, "2") };
}

const nameOf = (of: WorkloadSpec): string => containerName(OWNER.nodeId, of);
let machine: Machine;

beforeEach(async () => {
  machine = new Machine();
  for (const { image } of [engine, agent, next.engine, next.agent]) machine.runtime.addImage(image);
  machine.startDaemon(wants(1, engine, agent));
  await machine.time.advance(1000);
  expect(machine.running()).toEqual([nameOf(agent), nameOf(engine)].toSorted());
});
afterEach(() => machine.stopDaemon());

function wants(generation: number, ...workloads: WorkloadSpec[]): DesiredState {
  return aDesiredState({ generation, workloads });
}

/** All changes to a workload's containers since then. */
function changesOf(spec: WorkloadSpec): string[] {
  return machine.runtime.changes.filter((change) => change.includes(`-${spec.name}-`));
}

test.each([
  { one: "agent", spec: agent, other: engine },
  { one: "engine", spec: engine, other: agent },
])("a crash or a crash loop of the $one does not affect the other", async ({ spec, other }) => {
  const before = changesOf(other);
  machine.runtime.crashOnStart(spec.image, 1);
  machine.runtime.end(nameOf(spec), 1);
  await machine.time.advance(600_000);
  expect(machine.running()).toEqual([nameOf(other)]);
  machine.runtime.crashOnStart(spec.image, null);
  await machine.time.advance(600_000);
  expect(machine.running()).toEqual([nameOf(agent), nameOf(engine)].toSorted());
  expect(changesOf(other)).toEqual(before);
});

test.each([
  { one: "agent", spec: agent, to: next.agent, other: engine },
  { one: "engine", spec: engine, to: next.engine, other: agent },
])("an update of the $one, even one that is rolled back, does not affect the other", async ({ spec, to, other }) => {
  const before = changesOf(other);
  machine.runtime.crashOnStart(to.image, 3);
  machine.loop.desiredChanged(wants(2, to, other));
  await machine.time.advance(60_000);
  expect(machine.running()).toEqual([nameOf(other), nameOf(spec)].toSorted());
  expect(machine.events.some((event) => event.startsWith("update_rolled_back"))).toBe(true);
  machine.runtime.crashOnStart(to.image, null);
  const fixed = { ...to, specHash: to.specHash.replace(/^./, "3") };
  machine.loop.desiredChanged(wants(3, fixed, other));
  await machine.time.advance(60_000);
  expect(machine.running()).toEqual([nameOf(other), nameOf(fixed)].toSorted());
  expect(changesOf(other)).toEqual(before);
});

test("a step of one that hangs does not delay the other", async () => {
  const hang = Promise.withResolvers<void>();
  machine.runtime.delay = (call, name) =>
    call === "stop" && name === nameOf(agent) ? hang.promise : Promise.resolve();
  machine.loop.desiredChanged(wants(2, engine, next.agent));
  await machine.time.advance(60_000);
  machine.loop.desiredChanged(wants(3, next.engine, next.agent));
  await machine.time.advance(60_000);
  expect(machine.running()).toContain(nameOf(next.engine));
  expect(findServing(machine.snapshot, "engine")?.ready).toBe(true);
  hang.resolve();
  await machine.time.advance(60_000);
  expect(machine.running()).toEqual([nameOf(next.agent), nameOf(next.engine)].toSorted());
});

test("a removed agent ends immediately, and the engine continues in the same run", async () => {
  const before = changesOf(engine);
  machine.loop.desiredChanged(wants(2, engine));
  await machine.time.advance(1000);
  expect(changesOf(agent).slice(-2)).toEqual([`stop ${nameOf(agent)}`, `remove ${nameOf(agent)}`]);
  expect(machine.runtime.all().map(({ name }) => name)).toEqual([nameOf(engine)]);
  expect(changesOf(engine)).toEqual(before);
});

test("a stop-first update never runs two containers of an agent, wherever the daemon dies during it", async () => {
  let most = 0;
  const look = (): void => {
    const running = machine.running().filter((name) => name.includes(`-${agent.name}-`));
    most = Math.max(most, running.length);
  };
  machine.runtime.watch(OWNER, look, new AbortController().signal);
  let desired = wants(2, engine, next.agent);
  for (const call of ["create", "stop", "start", "remove"] as const) {
    const reached = Promise.withResolvers<void>();
    machine.runtime.delay = async (now, name) => {
      if (now === call && name.includes(`-${agent.name}-`)) reached.resolve();
    };
    machine.loop.desiredChanged(desired);
    await Promise.race([reached.promise, machine.time.advance(60_000)]);
    await machine.stopDaemon();
    machine.runtime.delay = () => Promise.resolve();
    machine.startDaemon(desired);
    await machine.time.advance(60_000);
    const [, wanted] = desired.workloads;
    if (wanted === undefined) throw new Error("no agent");
    expect(machine.running()).toEqual([nameOf(wanted), nameOf(engine)].toSorted());
    desired = wants(desired.generation + 1, engine, wanted.image === agent.image ? next.agent : agent);
  }
  expect(most).toBe(1);
});
