import { afterEach, describe, expect, test } from "vitest";
import { buildReports } from "../report/workload-report.ts";
import { RuntimeError } from "../runtime/container-runtime.ts";
import { containerName, networkName, ownershipLabels } from "../runtime/ownership.ts";
import { aDesiredState, aSpec, OWNER } from "../testing/builders.ts";
import { Machine } from "../testing/loop-harness.ts";

const v1 = aSpec({ image: "example/engine:1", specHash: "1".repeat(64) });
const v2 = aSpec({ image: "example/engine:2", specHash: "2".repeat(64) });
const ADD_NETWORK = `add network ${networkName(OWNER.nodeId, v1)}`;
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
const crash = async (): Promise<void> => {
  machine.runtime.end(name1, 139);
  await machine.time.advance(150);
};

test("a workload is created, started and becomes ready", async () => {
  start().startDaemon(wants(1, v1));
  expect(await changesOf(1000)).toEqual([ADD_NETWORK, `create ${name1}`, `start ${name1}`]);
  const [container] = machine.snapshot?.observed?.containers ?? [];
  expect(container && machine.snapshot?.health(container)).toMatchObject({ state: "ready", models: ["tiny"] });
});

test("without a desired state nothing is touched", async () => {
  start();
  machine.runtime.plant({ name: name1, labels: ownershipLabels(OWNER, v1, 1), state: "running" });
  machine.startDaemon(null);
  expect(await changesOf(3_600_000)).toEqual([]);
});

test("an image is pulled only if it is absent", async () => {
  start().runtime.loseImage(v1.image);
  machine.runtime.registry.add(v1.image);
  machine.startDaemon(wants(1, v1));
  expect(await changesOf(1000)).toEqual([`pull ${v1.image}`, ADD_NETWORK, `create ${name1}`, `start ${name1}`]);
});

describe("restarts of the daemon", () => {
  test("a running workload is adopted and not touched (dstack#4182)", async () => {
    start().startDaemon(wants(1, v1));
    await machine.time.advance(10_000);
    await machine.stopDaemon();
    expect(machine.running()).toEqual([name1]);
    machine.startDaemon(wants(1, v1));
    expect(await changesOf(600_000)).toEqual([]);
    expect(machine.running()).toEqual([name1]);
  });

  test("a workload that ended meanwhile is started immediately", async () => {
    start().startDaemon(wants(1, v1));
    await machine.time.advance(10_000);
    await machine.stopDaemon();
    machine.runtime.end(name1, 137);
    machine.startDaemon(wants(1, v1));
    expect(await changesOf(1000)).toEqual([`start ${name1}`]);
  });

  test("a container that was only created is started (nomad#2084: the response to a create may be lost)", async () => {
    const { runtime } = start();
    const network = networkName(OWNER.nodeId, v1);
    await runtime.addNetwork({ name: network, owner: OWNER, workloadId: v1.workloadId, internet: true });
    runtime.plant({ name: name1, labels: ownershipLabels(OWNER, v1, 1), image: v1.image, network });
    machine.startDaemon(wants(1, v1));
    expect(await changesOf(1000)).toEqual([`start ${name1}`]);
  });

  test("an update continues from where it was", async () => {
    start().startDaemon(wants(1, v1));
    await machine.time.advance(10_000);
    machine.loop.desiredChanged(wants(2, v2));
    await machine.time.advance(0);
    await machine.stopDaemon();
    machine.startDaemon(wants(2, v2));
    await machine.time.advance(60_000);
    expect(machine.runtime.all().map((container) => container.name)).toEqual([name2]);
  });
});

describe("failures of the workload", () => {
  test("a killed engine is restarted immediately, and the reason is reported", async () => {
    start().startDaemon(wants(1, v1));
    await machine.time.advance(10_000);
    await crash();
    expect(machine.running()).toEqual([name1]);
    expect(machine.events).toContainEqual(
      expect.stringContaining("exited: crashed with a segmentation fault (signal 11); restarting"),
    );
    expect(machine.snapshot?.records.get(name1)).toMatchObject({ restarts: 1, lastExit: { code: 139 } });
  });

  test("a workload that a stopping container engine ended and refused to start is started when the engine is back", async () => {
    start().startDaemon(wants(1, v1));
    await machine.time.advance(10_000);
    for (let stop = 0; stop < 3; stop++) {
      for (let call = 0; call < 2; call++)
        machine.runtime.failNext("start", new RuntimeError("rejected", "shutting down"));
      await crash();
      for (let call = 0; call < 3; call++) machine.runtime.failNext("list", new RuntimeError("unavailable", "away"));
      machine.loop.wake();
      await machine.time.advance(4000);
      machine.runtime.forgetFailures();
      await machine.time.advance(3000);
      expect(machine.running()).toEqual([name1]);
    }
  });

  test("a crash loop backs off 10 s × 2ⁿ, at most 5 min", async () => {
    start().runtime.crashOnStart(v1.image, 1);
    machine.startDaemon(wants(1, v1));
    const starts = async (milliseconds: number): Promise<number> =>
      (await changesOf(milliseconds)).filter((change) => change.startsWith("start")).length;
    expect(await starts(5000)).toBe(2);
    expect(await starts(5500)).toBe(1);
    expect(await starts(18_000)).toBe(0);
    expect(await starts(3000)).toBe(1);
    await machine.time.advance(3_600_000);
    expect(await starts(3_600_000)).toBe(12);
  });

  test("a stable run resets earlier failures", async () => {
    start().startDaemon(wants(1, v1));
    await machine.time.advance(10_000);
    for (let i = 0; i < 4; i++) {
      await crash();
      await machine.time.advance(90_000);
    }
    expect(machine.snapshot?.records.get(name1)?.failures).toBe(4);
    await machine.time.advance(330_000);
    await crash();
    expect(machine.running()).toEqual([name1]);
    expect(machine.snapshot?.records.get(name1)).toMatchObject({ failures: 1, restarts: 5 });
  });

  test("an engine that runs but does not respond is restarted", async () => {
    start().startDaemon(wants(1, v1));
    await machine.time.advance(10_000);
    machine.sick.add(v1.image);
    expect(await changesOf(20_000)).toEqual([`stop ${name1}`, `start ${name1}`]);
    expect(machine.snapshot?.records.get(name1)?.lastExit?.reason).toBe("unhealthy: answered 500");
    machine.sick.clear();
    await machine.time.advance(5000);
    expect(machine.events.filter((event) => event.startsWith("workload_exited"))).toHaveLength(1);
  });

  test("an engine may use its whole start period", async () => {
    start().sick.add(v1.image);
    machine.startDaemon(wants(1, v1));
    await machine.time.advance(59_000);
    machine.sick.clear();
    expect((await changesOf(10_000)).filter((change) => change.startsWith("stop"))).toEqual([]);
  });
});

describe("a container engine outage", () => {
  test("of 30 s ends no workload and starts none twice (nomad#1859)", async () => {
    start().startDaemon(wants(1, v1));
    await machine.time.advance(10_000);
    machine.runtime.available = false;
    await machine.time.advance(30_000);
    expect(machine.snapshot?.away).not.toBeNull();
    expect(machine.snapshot?.observed?.containers).toHaveLength(1);
    machine.runtime.available = true;
    expect(await changesOf(60_000)).toEqual([]);
    expect(machine.running()).toEqual([name1]);
    expect(machine.events.filter((event) => event.startsWith("runtime_"))).toHaveLength(2);
  });

  test("that also takes down published ports does not end a container that never stopped", async () => {
    start().startDaemon(wants(1, v1));
    await machine.time.advance(10_000);
    machine.runtime.available = false;
    machine.sick.add(v1.image);
    await machine.time.advance(60_000);
    machine.runtime.available = true;
    machine.sick.clear();
    expect(await changesOf(60_000)).toEqual([]);
    expect(machine.running()).toEqual([name1]);
  });

  test("does not protect an engine that fails afterwards: it is stopped after a whole threshold", async () => {
    start().startDaemon(wants(1, v1));
    await machine.time.advance(10_000);
    machine.runtime.available = false;
    machine.sick.add(v1.image);
    await machine.time.advance(60_000);
    machine.runtime.available = true;
    expect((await changesOf(30_000))[0]).toMatch(/^stop/);
  });

  test("from the start is waited for", async () => {
    start().runtime.available = false;
    machine.startDaemon(wants(1, v1));
    await machine.time.advance(120_000);
    machine.runtime.available = true;
    await machine.time.advance(5000);
    expect(machine.running()).toEqual([name1]);
  });

  test("that hides an event is made up for by the next list (go-dockerclient#163)", async () => {
    start().startDaemon(wants(1, v1));
    await machine.time.advance(10_000);
    machine.runtime.vanish(name1);
    await machine.time.advance(31_000);
    expect(machine.running()).toEqual([name1]);
  });
});

describe("names", () => {
  test("that belong to others are left alone, and used when they become free", async () => {
    start().runtime.plant({ name: name1, state: "running", image: "someone/else" });
    machine.startDaemon(wants(1, v1));
    expect(await changesOf(120_000)).toEqual([]);
    expect(machine.snapshot?.observed?.foreign.has(name1)).toBe(true);
    machine.runtime.vanish(name1);
    await machine.time.advance(31_000);
    expect(machine.running()).toEqual([name1]);
  });

  test("are freed by removing our container that has another spec (balena-supervisor#646)", async () => {
    start().runtime.plant({ name: name1, labels: ownershipLabels(OWNER, v2, 1), state: "running", image: v2.image });
    machine.startDaemon(wants(1, v1));
    expect(await changesOf(10_000)).toEqual([
      `stop ${name1}`,
      `remove ${name1}`,
      ADD_NETWORK,
      `create ${name1}`,
      `start ${name1}`,
    ]);
  });

  test("another daemon's workloads on the same container engine are not touched (gpustack#3346)", async () => {
    const neighbour = { ...OWNER, nodeId: "nod_another0000000000neighbour" };
    start().runtime.plant({
      name: "fairlead-neighbour-engine",
      labels: ownershipLabels(neighbour, v1, 1),
      state: "running",
    });
    machine.startDaemon(aDesiredState({ workloads: [] }));
    expect(await changesOf(600_000)).toEqual([]);
  });
});

test("a workload that is no longer wanted is stopped and removed; its neighbour stays (gpustack#2935)", async () => {
  const other = aSpec({ workloadId: "wkl_other", name: "other", image: v2.image, specHash: "3".repeat(64) });
  start().startDaemon(wants(1, v1, other));
  await machine.time.advance(10_000);
  machine.loop.desiredChanged(wants(2, other));
  await machine.time.advance(9000);
  expect(machine.running()).toHaveLength(2);
  await machine.time.advance(3000);
  expect(machine.runtime.all().map((container) => container.name)).toEqual([containerName(OWNER.nodeId, other)]);
});

test("a stop that hangs delays neither the other workloads nor a second stop (amazon-ecs-agent#2874)", async () => {
  const other = aSpec({ workloadId: "wkl_other", name: "other", image: v2.image, specHash: "3".repeat(64) });
  start().startDaemon(wants(1, v1));
  await machine.time.advance(10_000);
  machine.runtime.delay = (call) => (call === "stop" ? new Promise(() => undefined) : Promise.resolve());
  machine.loop.desiredChanged(wants(2, other));
  await machine.time.advance(60_000);
  expect(machine.running()).toContain(containerName(OWNER.nodeId, other));
  expect(machine.snapshot?.running).toMatchObject([{ type: "stop", name: name1 }]);
});

test("closing leaves workloads alone and cancels pulls", async () => {
  start().startDaemon(wants(1, v1));
  await machine.time.advance(10_000);
  await machine.stopDaemon();
  expect(await changesOf(600_000)).toEqual([]);
  expect(machine.running()).toEqual([name1]);
});

describe("the init process of a container", () => {
  const made = async (changes: object, start = { entrypoint: ["/app"], command: [] as string[] }): Promise<unknown> => {
    machine = new Machine();
    machine.runtime.addImage(v1.image, { start });
    machine.startDaemon(wants(1, { ...v1, ...changes }));
    await machine.time.advance(1000);
    return machine.runtime.created.map(({ spec }) => spec.init);
  };

  test("is Docker's, unless the image brings its own or the spec decides", async () => {
    const s6 = { entrypoint: ["/init"], command: [] };
    expect(await made({})).toEqual([true]);
    expect(await made({}, s6)).toEqual([false]);
    expect(await made({ init: true }, s6)).toEqual([true]);
    expect(await made({ init: false })).toEqual([false]);
  });
});

test("a container that ends at its process limit is reported as such", async () => {
  start().runtime.processCounts.set(v1.image, { count: 64, limit: 64 });
  machine.startDaemon(wants(1, v1));
  await machine.time.advance(120_000);
  expect(machine.snapshot && buildReports(machine.snapshot)).toMatchObject([
    { ready: true, message: "process limit reached: 64 (`resources.pids`)" },
  ]);
  await crash();
  const { records } = machine.snapshot ?? {};
  expect(records?.get(name1)?.lastExit?.reason).toBe(
    "crashed with a segmentation fault (signal 11); process limit reached: 64 (`resources.pids`)",
  );
});
