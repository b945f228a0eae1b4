import type { WorkloadSpec } from "@fairlead/protocol/workload";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { buildReports } from "../report/workload-report.ts";
import { RuntimeError } from "../runtime/container-runtime.ts";
import { containerName, LABELS } from "../runtime/ownership.ts";
import { aDesiredState, anAgent, aSpec, OWNER } from "../testing/builders.ts";
import { freePulls, Machine } from "../testing/loop-harness.ts";

const spec = aSpec({ image: "example/engine:1" });
const name = containerName(OWNER.nodeId, spec);
let machine: Machine;
beforeEach(() => {
  machine = new Machine();
  machine.runtime.registry.add(spec.image);
});
afterEach(() => machine.stopDaemon());

const message = (): string => (machine.snapshot ? (buildReports(machine.snapshot)[0]?.message ?? "") : "");

describe("a pull", () => {
  test("uses the workload's own login, or none", async () => {
    machine.pulls = { ...freePulls, registryAuth: async ({ workloadId }) => ({ username: workloadId, password: "p" }) };
    machine.startDaemon(aDesiredState({ workloads: [spec] }));
    await machine.time.advance(10_000);
    expect(machine.runtime.pulledAs).toEqual(["wkl_engine"]);
    expect(machine.running()).toEqual([name]);
  });

  test("with a wrong login delays no other workload of the same image", async () => {
    const login = (name: string) => [{ name, as: "registry", version: "1.a" } as const];
    const agent = anAgent({ image: spec.image, secrets: login("WRONG") });
    const engine = { ...spec, secrets: login("RIGHT") };
    const registryAuth = async ({ secrets }: WorkloadSpec) => {
      if (secrets?.[0]?.name === "WRONG") throw new Error("unauthorized");
      await new Promise<void>((resolve) => machine.time.after(60_000, resolve));
      return null;
    };
    machine.pulls = { ...freePulls, registryAuth };
    machine.startDaemon(aDesiredState({ workloads: [agent, engine] }));
    await machine.time.advance(30_000);
    const reports = machine.snapshot ? buildReports(machine.snapshot) : [];
    expect(reports.map(({ state, message }) => [state, message])).toEqual([
      ["backing-off", "cannot pull example/engine:1: unauthorized (5 attempts)"],
      ["pulling", ""],
    ]);
    await machine.time.advance(60_000);
    expect(machine.running()).toContain(name);
  });

  test("whose login has not arrived yet is retried, and says why", async () => {
    let login = false;
    const registryAuth = async () => {
      if (!login) throw new Error("the secret REG is not set");
      return { username: "robot", password: "p" };
    };
    machine.pulls = { ...freePulls, registryAuth };
    machine.startDaemon(aDesiredState({ workloads: [spec] }));
    await machine.time.advance(10_000);
    expect(message()).toContain("cannot pull example/engine:1: the secret REG is not set");
    login = true;
    await machine.time.advance(300_000);
    expect(machine.running()).toEqual([name]);
  });

  test("that has failed for long is retried immediately when the desired state changes, since its login may be new", async () => {
    let login = false;
    const registryAuth = async () => {
      if (!login) throw new Error("unauthorized");
      return null;
    };
    machine.pulls = { ...freePulls, registryAuth };
    machine.startDaemon(aDesiredState({ workloads: [spec] }));
    await machine.time.advance(600_000);
    login = true;
    machine.loop.desiredChanged(aDesiredState({ generation: 2, workloads: [spec] }));
    await machine.time.advance(3000);
    expect(machine.running()).toEqual([name]);
  });

  test("onto a disk that is too full does not begin, is reported, and starts when there is room (amazon-ecs-agent#632)", async () => {
    let free = false;
    const requireRoom = async () => {
      if (!free) throw new RuntimeError("no-room", "too little disk space");
    };
    machine.pulls = { ...freePulls, requireRoom };
    machine.startDaemon(aDesiredState({ workloads: [spec] }));
    await machine.time.advance(60_000);
    expect(machine.runtime.pulledAs).toEqual([]);
    expect(message()).toContain("too little disk space");
    free = true;
    await machine.time.advance(300_000);
    expect(machine.running()).toEqual([name]);
  });

  test("that turns out too large is cancelled on the way, and the old container keeps serving", async () => {
    const older = aSpec({ image: "example/engine:0", specHash: "0".repeat(64) });
    machine.runtime.addImage(older.image);
    machine.startDaemon(aDesiredState({ workloads: [older] }));
    await machine.time.advance(10_000);
    machine.runtime.pendingBytes = 5e9;
    machine.runtime.pullGate = new Promise(() => undefined);
    const asked: number[] = [];
    const requireRoom = async (pending: number) => {
      asked.push(pending);
      if (pending > 1e9) throw new RuntimeError("no-room", "too little disk space");
    };
    await machine.stopDaemon();
    machine.pulls = { ...freePulls, requireRoom };
    machine.startDaemon(aDesiredState({ generation: 2, workloads: [spec] }));
    await machine.time.advance(1000);
    expect(asked).toEqual([0, 5e9]);
    expect(machine.snapshot?.running).toEqual([]);
    expect(message()).toContain("too little disk space");
    expect(machine.running()).toEqual([containerName(OWNER.nodeId, older)]);
  });

  test("reports its progress at most once a second, however often Docker does (balena-supervisor#1575)", async () => {
    machine.runtime.progress = Array.from({ length: 90 }, (_, percent) => percent);
    machine.runtime.pullGate = new Promise(() => undefined);
    machine.startDaemon(aDesiredState({ workloads: [spec] }));
    await machine.time.advance(0);
    const told = machine.pictures
      .filter((picture) => picture.pulls.size > 0)
      .map((picture) => picture.pulls.get(spec.image));
    expect(new Set(told).size).toBeLessThanOrEqual(2);
    await machine.time.advance(31_000);
    expect(message()).toContain("pulling example/engine:1: 89 %");
  });

  test("that succeeds is recorded, so that its image can be removed later", async () => {
    const told: string[] = [];
    machine.pulls = { ...freePulls, onPulled: (image, workloadId) => told.push(`${image} ${workloadId}`) };
    machine.startDaemon(aDesiredState({ workloads: [spec] }));
    await machine.time.advance(10_000);
    expect(told).toEqual(["example/engine:1 wkl_engine"]);
  });
});

describe("the port of a workload", () => {
  const portSeen = () => machine.snapshot?.observed?.containers[0]?.hostPort;
  beforeEach(async () => {
    machine.runtime.addImage(spec.image);
    machine.startDaemon(aDesiredState({ workloads: [spec] }));
    await machine.time.advance(10_000);
  });

  test("changes after a start that was not ours, and is probed and routed to anew (moby#20486)", async () => {
    const before = portSeen();
    machine.runtime.end(name, 137);
    await machine.runtime.start(machine.runtime.byName(name)?.id ?? "");
    await machine.time.advance(5000);
    expect(portSeen()).not.toBe(before);
    const container = machine.snapshot?.observed?.containers[0];
    expect(container && machine.snapshot?.health(container).state).toBe("ready");
  });

  test("is dropped once its container has ended, so that the next listener on it is never treated as ours", async () => {
    machine.runtime.failNext("start", new RuntimeError("rejected", "no"));
    machine.runtime.end(name, 1);
    await machine.time.advance(200);
    expect(portSeen()).toBeNull();
    const container = machine.snapshot?.observed?.containers[0];
    expect(container && machine.snapshot?.health(container).state).toBe("starting");
  });

  test("belongs only to a container with our labels", async () => {
    machine.runtime.plant({
      name: "theirs",
      state: "running",
      hostPort: 1,
      labels: { [LABELS.workload]: spec.workloadId },
    });
    await machine.time.advance(60_000);
    expect(machine.snapshot?.observed?.containers.map((container) => container.name)).toEqual([name]);
  });
});

test("a container that someone has paused is reported", async () => {
  machine.runtime.addImage(spec.image);
  machine.startDaemon(aDesiredState({ workloads: [spec] }));
  await machine.time.advance(10_000);
  const running = machine.runtime.byName(name);
  machine.runtime.vanish(name);
  machine.runtime.plant({ ...running, name, state: "paused" });
  await machine.time.advance(1000);
  expect(message()).toContain("its container is paused");
});
