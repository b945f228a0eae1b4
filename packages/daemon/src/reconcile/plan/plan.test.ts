import type { WorkloadSpec } from "@fairlead/protocol/workload";
import { expect, describe as group, test } from "vitest";
import { inputOf, JUST_READY, NOW, type Picture, type Piece, planOf, READY } from "./picture.fixture.ts";
import { plan } from "./plan.ts";
import type { RunRecord } from "./run-record.ts";

const MISSING_FILE = [{ name: "TOKEN", as: "file", why: "is not set" }] as const;
const STOPPED = { state: "exited", record: { everReady: true } } as const;

interface Case extends Picture {
  readonly so: string;
  readonly steps: readonly string[];
  readonly wait?: number;
}

const both: readonly Case[] = [
  { so: "an absent image is pulled", imageAbsent: true, steps: ["pull example/engine:1"] },
  { so: "a present image is never pulled", steps: ["create v2 from example/engine:1"] },
  { so: "a created container is started", pieces: [{ is: "v2", state: "created" }], steps: ["start v2"] },
  { so: "a container that is starting is waited for", pieces: [{ is: "v2" }], steps: [] },
  { so: "a ready container is left alone", pieces: [{ is: "v2", ...READY }], steps: [] },
  { so: "a paused container counts as running", pieces: [{ is: "v2", state: "paused", ...READY }], steps: [] },
  { so: "an ended container is restarted", pieces: [{ is: "v2", state: "exited" }], steps: ["start v2"] },
  {
    so: "a crash loop waits for its backoff",
    pieces: [{ is: "v2", state: "exited", record: { failures: 3, notBefore: NOW + 20_000 } }],
    steps: [],
    wait: 20_000,
  },
  {
    so: "an unhealthy container is stopped, to be restarted",
    pieces: [{ is: "v2", health: "unhealthy" }],
    steps: ["stop v2 (unhealthy)"],
  },
  { so: "a dead container is removed", pieces: [{ is: "v2", state: "dead" }], steps: ["remove v2"] },
  { so: "a container that is being removed is waited for", pieces: [{ is: "v2", state: "removing" }], steps: [] },
  {
    so: "a container of unknown state freezes its workload",
    pieces: [
      { is: "v2", state: "unknown" },
      { is: "v1", ...READY },
    ],
    steps: [],
  },
  { so: "no container is created without a secret that it needs", missing: MISSING_FILE, steps: [] },
  {
    so: "the image is pulled while a secret is missing",
    imageAbsent: true,
    missing: MISSING_FILE,
    steps: ["pull example/engine:1"],
  },
  {
    so: "no image is pulled without the login that its registry requires",
    imageAbsent: true,
    missing: [{ name: "REG", as: "registry", why: "is not set" }],
    steps: [],
  },
  {
    so: "an ended container waits for its secret",
    missing: MISSING_FILE,
    pieces: [{ is: "v2", ...STOPPED }],
    steps: [],
  },
  {
    so: "a running container is left alone when its secret is removed",
    missing: MISSING_FILE,
    pieces: [{ is: "v2", ...READY }],
    steps: [],
  },
  {
    so: "the old container keeps serving while the new one waits for its secret",
    missing: MISSING_FILE,
    pieces: [{ is: "v1", ...READY }],
    steps: [],
  },
  { so: "a name that is not ours is refused, never removed", foreign: true, steps: [] },
  {
    so: "a rejected create waits for its backoff",
    record: { failures: 1, notBefore: NOW + 5000 },
    steps: [],
    wait: 5000,
  },
  {
    so: "the old container keeps serving during a long pull, and is kept running",
    imageAbsent: true,
    pieces: [{ is: "v1", ...STOPPED }],
    steps: ["pull example/engine:1", "start v1"],
  },
  {
    so: "the old container is stopped once the new one is ready",
    pieces: [
      { is: "v2", ...READY },
      { is: "v1", ...READY },
    ],
    steps: ["stop v1 (superseded)"],
  },
  {
    so: "requests move to the new container before the old one is stopped",
    pieces: [
      { is: "v2", ...JUST_READY },
      { is: "v1", ...READY },
    ],
    steps: [],
    wait: 1000,
  },
  {
    so: "an old container that is still serving requests may finish",
    pieces: [
      { is: "v2", health: "ready", record: { readySince: NOW - 20_000, everReady: true } },
      { is: "v1", ...READY, busy: 2 },
    ],
    steps: [],
    wait: 1000,
  },
  {
    so: "an old container that never finishes its requests is stopped",
    pieces: [
      { is: "v2", health: "ready", record: { readySince: NOW - 30_000, everReady: true } },
      { is: "v1", ...READY, busy: 2 },
    ],
    steps: ["stop v1 (superseded)"],
  },
  {
    so: "a stopped old container is removed once the new one is ready",
    pieces: [
      { is: "v2", ...READY },
      { is: "v1", ...STOPPED },
    ],
    steps: ["remove v1"],
  },
  {
    so: "the best of several old containers is kept",
    pieces: [
      { is: "v0", ...STOPPED },
      { is: "v1", ...READY },
    ],
    steps: ["remove v0"],
  },
];

const stopFirst: readonly Case[] = [
  {
    so: "the new container is created before the old one stops",
    pieces: [{ is: "v1", ...READY }],
    steps: ["create v2 from example/engine:1"],
  },
  {
    so: "the old container stops before the new one starts",
    pieces: [
      { is: "v2", state: "created" },
      { is: "v1", ...READY },
    ],
    steps: ["stop v1 (superseded)"],
  },
  {
    so: "the old container may first finish its running requests",
    pieces: [
      { is: "v2", state: "created", record: { seenSince: NOW - 1000 } },
      { is: "v1", ...READY, busy: 1 },
    ],
    steps: [],
    wait: 1000,
  },
  {
    so: "the old container is stopped if it never finishes its requests",
    pieces: [
      { is: "v2", state: "created", record: { seenSince: NOW - 30_000 } },
      { is: "v1", ...READY, busy: 1 },
    ],
    steps: ["stop v1 (superseded)"],
  },
  {
    so: "the new container starts after the old one has stopped",
    pieces: [
      { is: "v2", state: "created" },
      { is: "v1", ...STOPPED },
    ],
    steps: ["start v2"],
  },
  {
    so: "the old container is kept while the new one starts",
    pieces: [{ is: "v2" }, { is: "v1", ...STOPPED }],
    steps: [],
  },
  {
    so: "a new container that ends before it is ready is rolled back",
    pieces: [
      { is: "v2", state: "exited", record: { failures: 1 } },
      { is: "v1", ...STOPPED },
    ],
    steps: ["start v1"],
  },
  {
    so: "a new container that cannot be created is rolled back",
    record: { failures: 1 },
    pieces: [{ is: "v1", ...STOPPED }],
    steps: ["start v1"],
  },
  {
    so: "after a rollback the old container is kept running, and the new one is not retried",
    pieces: [
      { is: "v2", state: "exited", record: { failures: 1 } },
      { is: "v1", ...READY },
    ],
    steps: [],
  },
  {
    so: "a new container that still runs is stopped first in a rollback",
    pieces: [
      { is: "v2", record: { failures: 1 } },
      { is: "v1", ...STOPPED },
    ],
    steps: ["stop v2 (rolled-back)"],
  },
  {
    so: "an old container that never worked is not rolled back to",
    pieces: [
      { is: "v2", state: "exited", record: { failures: 1 } },
      { is: "v1", state: "exited", record: { failures: 2 } },
    ],
    steps: ["start v2"],
  },
  {
    so: "a crash after the new container was ready causes no rollback",
    pieces: [
      { is: "v2", state: "exited", record: { failures: 1, everReady: true } },
      { is: "v1", ...STOPPED },
    ],
    steps: ["start v2"],
  },
];

const startFirst: readonly Case[] = [
  {
    so: "the new container starts beside the old one",
    pieces: [
      { is: "v2", state: "created" },
      { is: "v1", ...READY },
    ],
    steps: ["start v2"],
  },
  {
    so: "the old container keeps serving while the new one starts",
    pieces: [{ is: "v2" }, { is: "v1", ...READY }],
    steps: [],
  },
  {
    so: "an old container that ends meanwhile is restarted",
    pieces: [{ is: "v2" }, { is: "v1", ...STOPPED }],
    steps: ["start v1"],
  },
  {
    so: "a new container that keeps failing never displaces the old one",
    pieces: [
      { is: "v2", state: "exited", record: { failures: 2, notBefore: NOW + 10_000 } },
      { is: "v1", ...READY },
    ],
    steps: [],
    wait: 10_000,
  },
  {
    so: "a new container that keeps failing is given up eventually",
    pieces: [
      { is: "v2", state: "exited", record: { failures: 3, notBefore: NOW } },
      { is: "v1", ...READY },
    ],
    steps: [],
  },
  {
    so: "a new container that keeps failing is retried if there is nothing to roll back to",
    pieces: [{ is: "v2", state: "exited", record: { failures: 3 } }],
    steps: ["start v2"],
  },
];

const run = (update: WorkloadSpec["update"], cases: readonly Case[]): void => {
  test.each(cases)("$so", ({ steps, wait, ...picture }) => {
    expect(planOf({ update, ...picture })).toEqual({ steps, wait: wait ?? null });
  });
};

group("start-first", () => run("start-first", [...both, ...startFirst]));
group("stop-first", () => run("stop-first", [...both, ...stopFirst]));

group("a container that no workload wants", () => {
  const orphan = (record: Partial<RunRecord>, piece: Partial<Piece> = {}): Picture => ({
    desired: { workloads: [] },
    pieces: [{ is: "v2", record, workloadId: "wkl_gone", ...piece }],
  });
  test("is left alone at first, since a desired state may be wrong for a moment (gpustack#3346)", () => {
    expect(planOf(orphan({ unwantedSince: NOW }))).toEqual({ steps: [], wait: 10_000 });
  });
  test("is then stopped, and then removed (gpustack#2935)", () => {
    expect(planOf(orphan({ unwantedSince: NOW - 10_000 })).steps).toEqual(["stop v2 (orphan)"]);
    expect(planOf(orphan({ unwantedSince: NOW - 10_000 }, { state: "exited" })).steps).toEqual(["remove v2"]);
  });
  test("gets at most 30 s to finish its running requests", () => {
    const busy = (ms: number): Picture => orphan({ unwantedSince: NOW - ms }, { busy: 1 });
    expect(planOf(busy(10_000))).toEqual({ steps: [], wait: 1000 });
    expect(planOf(busy(29_500))).toEqual({ steps: [], wait: 500 });
    expect(planOf(busy(30_000)).steps).toEqual(["stop v2 (orphan)"]);
  });
  test("is left alone if its state is unknown", () => {
    expect(planOf(orphan({ unwantedSince: NOW - 10_000 }, { state: "unknown" })).steps).toEqual([]);
  });
});

test("planning does not depend on the order in which containers are listed", () => {
  const pieces: Piece[] = [
    { is: "v0", ...STOPPED },
    { is: "v1", ...READY },
    { is: "v2", state: "created" },
  ];
  const input = inputOf({ pieces });
  const reversed = { ...input, observed: { ...input.observed, containers: input.observed.containers.toReversed() } };
  expect(plan(reversed)).toEqual(plan(input));
});
