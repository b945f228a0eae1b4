import { randomBytes } from "node:crypto";
import { systemClock } from "@fairlead/protocol/values/clock";
import type { DesiredState, WorkloadSpec } from "@fairlead/protocol/workload";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { nodeHttpClient } from "../link/http-client.ts";
import { systemTimers } from "../process/timers.ts";
import { buildReports } from "../report/workload-report.ts";
import { DockerRuntime } from "../runtime/docker/docker-runtime.ts";
import { containerName } from "../runtime/ownership.ts";
import { aDesiredState, aSpec } from "../testing/builders.ts";
import { DOCKER_SOCKET, type DockerCorner, dockerCorner, removeAllOf, whyNoDocker } from "../testing/docker-engine.ts";
import { freePulls } from "../testing/loop-harness.ts";
import { MemorySecrets } from "../testing/memory-secrets.ts";
import { silentLog } from "../testing/silent-log.ts";
import { createEngineProbe } from "./engine-facts.ts";
import { HealthMonitor } from "./health.ts";
import { type LoopSnapshot, ReconcileLoop } from "./loop.ts";
import { findServing } from "./serving.ts";

const reason = await whyNoDocker();
const title = reason === null ? "the whole loop on Docker" : `the whole loop on Docker (skipped: ${reason})`;

vi.setConfig({ testTimeout: 90_000, hookTimeout: 60_000 });
const WAIT = { timeout: 40_000, interval: 100 };

describe.skipIf(reason !== null)(title, () => {
  let corner: DockerCorner;
  let owner: { installationId: string; nodeId: string };
  let snapshot: LoopSnapshot | null = null;
  let events: string[] = [];
  let stop: () => Promise<void> = async () => undefined;

  beforeAll(async () => {
    corner = await dockerCorner("reconcile");
  });
  afterAll(() => corner.close());
  beforeEach(() => {
    owner = { installationId: "ins_test", nodeId: `nod_${randomBytes(6).toString("hex")}` };
    snapshot = null;
    events = [];
  });
  afterEach(async () => {
    await stop();
    await removeAllOf(corner.docker, owner.nodeId);
  });

  const spec = (changes: Partial<WorkloadSpec> = {}): WorkloadSpec =>
    aSpec({ image: corner.image, versionPath: "/version", specHash: "1".repeat(64), ...changes });
  const wants = (generation: number, ...workloads: WorkloadSpec[]): DesiredState =>
    aDesiredState({ ...owner, generation, workloads });
  const nameOf = (of: WorkloadSpec): string => containerName(owner.nodeId, of);
  const reports = () => (snapshot === null ? [] : buildReports(snapshot));
  const names = async (): Promise<string[]> =>
    (await new DockerRuntime(DOCKER_SOCKET).list(owner)).map((container) => container.name).toSorted();

  function startDaemon(desired: DesiredState): ReconcileLoop {
    const health = new HealthMonitor({
      probe: createEngineProbe(nodeHttpClient),
      isBusy: () => false,
      processes: ({ id }) => new DockerRuntime(DOCKER_SOCKET).processes(id),
      clock: systemClock,
      timers: systemTimers,
      onChange: () => loop.wake(),
    });
    const loop = new ReconcileLoop({
      runtime: new DockerRuntime(DOCKER_SOCKET),
      owner,
      health,
      inFlight: () => 0,
      secrets: new MemorySecrets(),
      pulls: freePulls,
      networkRules: { ready: async () => undefined, noWay: () => null },
      clock: systemClock,
      timers: systemTimers,
      log: silentLog,
      onEvent: (kind, _workloadId, message) => events.push(`${kind}: ${message}`),
      onSnapshot: (next) => {
        snapshot = next;
      },
    });
    stop = async () => {
      await loop.close();
      health.close();
    };
    loop.start(desired);
    return loop;
  }

  const untilReady = (generation: number) =>
    vi.waitFor(() => expect(reports()).toMatchObject([{ ready: true, generation }]), WAIT);

  test("a workload starts and responds, is restarted when killed, and is adopted by the next daemon", async () => {
    startDaemon(wants(1, spec()));
    await untilReady(1);
    expect(reports()).toMatchObject([
      { state: "running", version: "9.8.7", models: ["tiny"], imageDigest: expect.stringMatching(/^sha256:/) },
    ]);
    const serving = findServing(snapshot, "engine");
    const answer = await nodeHttpClient({
      method: "GET",
      url: `http://127.0.0.1:${serving?.port}/health`,
      timeoutMs: 5000,
    });
    expect(answer.text).toBe("ok\n");

    await corner.docker.getContainer(nameOf(spec())).kill();
    await vi.waitFor(
      () => expect(reports()).toMatchObject([{ ready: true, restartCount: 1, lastExit: { code: 137 } }]),
      WAIT,
    );

    await stop();
    const before = await corner.docker.getContainer(nameOf(spec())).inspect();
    expect(before.State.Running).toBe(true);
    snapshot = null;
    startDaemon(wants(1, spec()));
    await untilReady(1);
    const after = await corner.docker.getContainer(nameOf(spec())).inspect();
    expect(after.Id).toBe(before.Id);
    expect(after.State.StartedAt).toBe(before.State.StartedAt);
  });

  test("a start-first update never leaves the workload without a ready container", async () => {
    const a = spec({ update: "start-first" });
    const b = spec({ update: "start-first", specHash: "2".repeat(64), env: { NEW: "1" } });
    const loop = startDaemon(wants(1, a));
    await untilReady(1);
    const gaps: string[] = [];
    const watch = setInterval(() => {
      if (findServing(snapshot, "engine")?.ready !== true) gaps.push(JSON.stringify(reports()));
    }, 20);
    loop.desiredChanged(wants(2, b));
    await untilReady(2);
    await vi.waitFor(async () => expect(await names()).toEqual([nameOf(b)]), WAIT);
    clearInterval(watch);
    expect(gaps).toEqual([]);
  });

  test("an update that Docker cannot start is rolled back", async () => {
    const b = spec({ specHash: "2".repeat(64), command: ["/no/such/program"] });
    const loop = startDaemon(wants(1, spec()));
    await untilReady(1);
    loop.desiredChanged(wants(2, b));
    await vi.waitFor(() => {
      expect(reports()).toMatchObject([
        { ready: true, generation: 1, message: expect.stringContaining("failed and was undone") },
      ]);
      expect(findServing(snapshot, "engine")?.container.name).toBe(nameOf(spec()));
    }, WAIT);
  });

  test("an unwanted workload is removed, and a foreign container with a wanted name stays", async () => {
    const loop = startDaemon(wants(1, spec()));
    await untilReady(1);
    const taken = spec({ workloadId: "wkl_taken", name: "taken", specHash: "3".repeat(64) });
    const stranger = await corner.docker.createContainer({ name: nameOf(taken), Image: corner.image });
    try {
      loop.desiredChanged(wants(2, taken));
      await vi.waitFor(async () => expect(await names()).toEqual([]), WAIT);
      expect(reports()).toMatchObject([{ ready: false, state: "failed" }]);
      expect((await stranger.inspect()).Name).toBe(`/${nameOf(taken)}`);
    } finally {
      await stranger.remove({ force: true });
    }
  });

  test("an image that no registry has is reported, and affects nothing else", async () => {
    startDaemon(wants(1, spec({ image: "127.0.0.1:9/fairlead-test/none:1" })));
    await vi.waitFor(() => {
      expect(reports()).toMatchObject([{ state: "backing-off", message: expect.stringContaining("cannot pull") }]);
    }, WAIT);
    expect(events.some((event) => event.startsWith("step_failed"))).toBe(true);
  });
});
