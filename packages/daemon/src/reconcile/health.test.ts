import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Container, ProcessCount } from "../runtime/container-runtime.ts";
import { ownershipLabels, probeSettingsOf } from "../runtime/ownership.ts";
import { anAgent, aSpec, OWNER } from "../testing/builders.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { HealthMonitor, type HealthProbe, type HealthStatus, type ProbeTarget } from "./health.ts";

let time: FakeTime;
let monitor: HealthMonitor;
let wrong: string | null;
let mayBeLoading: boolean;
let facts: () => Promise<{ version: string; models: string[] }>;
let checks: number;
let completions: number;
let busy: boolean;
let processes: () => Promise<ProcessCount | null>;
let changes: number;

const labels = ownershipLabels(OWNER, aSpec(), 1);
const container: Container = {
  id: "c1",
  name: "c1",
  labels,
  state: "running",
  image: "example/engine:1",
  imageId: "sha256:1",
  network: "bridge",
  hostPort: 1,
  startedAt: "2026-01-01T00:00:00.000Z",
  finishedAt: null,
  exitCode: 0,
  outOfMemory: false,
  error: "",
};
const targetOf = (of: Container): ProbeTarget => {
  const settings = probeSettingsOf(of.labels);
  if (settings === null) throw new Error("no settings");
  return { container: of, port: 1, settings, image: null };
};
const status = (): HealthStatus => monitor.statusOf(container);

beforeEach(() => {
  time = new FakeTime();
  wrong = null;
  mayBeLoading = false;
  checks = 0;
  completions = 0;
  busy = false;
  processes = async () => null;
  changes = 0;
  facts = async () => ({ version: "1", models: ["m"] });
  const probe = {
    check: async (_target: ProbeTarget, { completion }: HealthProbe) => {
      checks += 1;
      if (completion) completions += 1;
      return wrong === null ? null : { words: wrong, mayBeLoading };
    },
    facts: () => facts(),
  };
  monitor = new HealthMonitor({
    probe,
    clock: time,
    timers: time,
    isBusy: () => busy,
    processes: () => processes(),
    onChange: () => (changes += 1),
  });
});
afterEach(() => monitor.close());

test("a healthy engine is ready immediately, with its version and models", async () => {
  monitor.track([targetOf(container)]);
  await time.advance(0);
  expect(status()).toEqual({ state: "ready", detail: "", version: "1", models: ["m"] });
  expect(changes).toBe(1);
});

test("an engine is probed every second until it is ready, then at its own interval", async () => {
  wrong = "loading";
  monitor.track([targetOf(container)]);
  await time.advance(10_500);
  expect(checks).toBe(11);
  wrong = null;
  await time.advance(1000);
  const before = checks;
  await time.advance(20_000);
  expect(checks - before).toBe(4);
});

test("failures in the start period do not count; after it, each one does", async () => {
  wrong = "loading";
  monitor.track([targetOf(container)]);
  await time.advance(59_000);
  expect(status()).toMatchObject({ state: "starting", detail: "loading" });
  await time.advance(2000);
  expect(status().state).toBe("starting");
  await time.advance(1000);
  expect(status().state).toBe("unhealthy");
});

test.each([
  [aSpec(), "loading the model"],
  [anAgent(), "starting up"],
])(
  "a container that does not respond is loading while it starts; afterwards, this is a failure (%#)",
  async (spec, words) => {
    const own = { ...container, labels: ownershipLabels(OWNER, spec, 1) };
    wrong = "not listening on its port";
    mayBeLoading = true;
    monitor.track([targetOf(own)]);
    await time.advance(1000);
    expect(monitor.statusOf(own)).toMatchObject({ state: "starting", detail: words });
    mayBeLoading = false;
    await time.advance(1000);
    expect(monitor.statusOf(own)).toMatchObject({ state: "starting", detail: "not listening on its port" });
    mayBeLoading = true;
    await time.advance(60_000);
    expect(monitor.statusOf(own).detail).toBe("not listening on its port");
  },
);

test("a container at its process limit is reported as such, responding or not, and only while it is at the limit", async () => {
  const limit = "process limit reached: 20 (`resources.pids`)";
  processes = async () => ({ count: 20, limit: 20 });
  monitor.track([targetOf(container)]);
  await time.advance(70_000);
  expect(status()).toMatchObject({ state: "ready", detail: "", exhausted: limit });
  wrong = "answered 500";
  await time.advance(15_000);
  expect(status()).toMatchObject({ state: "unhealthy", detail: limit, exhausted: limit });
  processes = async () => ({ count: 3, limit: 20 });
  await time.advance(10_000);
  expect(status()).toMatchObject({ detail: "answered 500" });
  expect(status()).not.toHaveProperty("exhausted");
});

test("the processes of a failing engine are counted within seconds, and a count that hangs or fails delays nothing", async () => {
  processes = () => Promise.reject(new Error("away"));
  wrong = "answered 500";
  monitor.track([targetOf(container)]);
  await time.advance(6000);
  expect(status().detail).toBe("answered 500");
  processes = () => new Promise(() => undefined);
  const before = checks;
  await time.advance(10_000);
  expect(checks - before).toBe(10);
  processes = async () => ({ count: 9, limit: 9 });
  await time.advance(7000);
  expect(status().detail).toBe("process limit reached: 9 (`resources.pids`)");
});

test("a ready engine may fail probes up to its threshold, and recovers", async () => {
  monitor.track([targetOf(container)]);
  await time.advance(0);
  wrong = "answered 500";
  await time.advance(10_000);
  expect(status()).toMatchObject({ state: "ready", detail: "answered 500" });
  await time.advance(5000);
  expect(status().state).toBe("unhealthy");
  wrong = null;
  await time.advance(5000);
  expect(status()).toMatchObject({ state: "ready", detail: "" });
});

test("a pardon gives an unhealthy engine its whole threshold again, but no new start period, and probes immediately", async () => {
  monitor.track([targetOf(container)]);
  await time.advance(0);
  wrong = "connection refused";
  await time.advance(15_000);
  expect(status().state).toBe("unhealthy");
  const before = checks;
  monitor.pardon();
  expect(status().state).toBe("starting");
  await time.advance(0);
  expect(checks).toBe(before + 1);
  await time.advance(1000);
  expect(status().state).toBe("starting");
  await time.advance(1000);
  expect(status().state).toBe("unhealthy");
  monitor.pardon();
  wrong = null;
  await time.advance(0);
  expect(status()).toMatchObject({ state: "ready", models: ["m"] });
});

test("an engine that does not report its facts is still ready, and is asked again", async () => {
  facts = async () => {
    throw new Error("no");
  };
  monitor.track([targetOf(container)]);
  await time.advance(0);
  expect(status()).toMatchObject({ state: "ready", models: [] });
  facts = async () => ({ version: "2", models: ["late"] });
  await time.advance(5000);
  expect(status()).toMatchObject({ version: "2", models: ["late"] });
});

test("models that an engine gains while it runs are noticed", async () => {
  monitor.track([targetOf(container)]);
  await time.advance(0);
  facts = async () => ({ version: "1", models: ["m", "n"] });
  await time.advance(65_000);
  expect(status().models).toEqual(["m", "n"]);
});

test("a restarted container starts over, and one that is gone is no longer probed", async () => {
  monitor.track([targetOf(container)]);
  await time.advance(0);
  const again = { ...container, startedAt: "2026-01-01T01:00:00.000Z" };
  wrong = "loading";
  monitor.track([targetOf(again)]);
  await time.advance(1000);
  expect(monitor.statusOf(again).state).toBe("starting");
  monitor.track([]);
  const before = checks;
  await time.advance(60_000);
  expect(checks).toBe(before);
});

test("a ready engine is asked for a token once a minute, and immediately after a failure", async () => {
  monitor.track([targetOf(container)]);
  await time.advance(0);
  expect(completions).toBe(1);
  await time.advance(59_000);
  expect(completions).toBe(1);
  await time.advance(5000);
  expect(completions).toBe(2);
  wrong = "/health answered 503";
  await time.advance(5000);
  wrong = null;
  await time.advance(5000);
  expect(completions).toBe(3);
});

test("an engine that is serving requests is not asked for a token, only whether it is there", async () => {
  monitor.track([targetOf(container)]);
  await time.advance(0);
  busy = true;
  const before = checks;
  await time.advance(600_000);
  expect(completions).toBe(1);
  expect(checks).toBeGreaterThan(before + 100);
  busy = false;
  await time.advance(5000);
  expect(completions).toBe(2);
});

describe("a container that counts as healthy while it runs", () => {
  const { health } = aSpec();
  const asked = {
    ...aSpec(),
    health: { ...health, startPeriodSeconds: 0, failureThreshold: 1, probe: "running" },
  } as const;
  const run = (startedAt: string): Container => ({
    ...container,
    labels: ownershipLabels(OWNER, asked, 1),
    startedAt,
  });
  const stateOf = (of: Container): string => monitor.statusOf(of).state;

  test("is ready once it has run for a moment, and is not probed over HTTP", async () => {
    const fresh = run("2026-01-01T00:00:00.000Z");
    wrong = "connection refused";
    monitor.track([targetOf(fresh)]);
    await time.advance(2000);
    expect(stateOf(fresh)).toBe("starting");
    await time.advance(2000);
    expect(monitor.statusOf(fresh)).toMatchObject({ state: "ready", version: "1" });
    expect(checks).toBe(0);
  });

  test("is ready immediately when an earlier daemon started it, even if the clock was set back since", async () => {
    const [old, fromTheFuture] = [run("2025-12-31T00:00:00.000Z"), { ...run("2027-01-01T00:00:00.000Z"), id: "c2" }];
    monitor.track([targetOf(old), targetOf(fromTheFuture)]);
    await time.advance(0);
    expect([stateOf(old), stateOf(fromTheFuture)]).toEqual(["ready", "ready"]);
  });
});
