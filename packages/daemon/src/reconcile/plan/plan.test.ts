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
  { so: "a container that is coming up is waited for", pieces: [{ is: "v2" }], steps: [] },
  { so: "a ready container is left alone", pieces: [{ is: "v2", ...READY }], steps: [] },
  { so: "a paused container counts as running", pieces: [{ is: "v2", state: "paused", ...READY }], steps: [] },
  { so: "an ended container is started again", pieces: [{ is: "v2", state: "exited" }], steps: ["start v2"] },
  {
    so: "a crash loop waits for its turn",
    pieces: [{ is: "v2", state: "exited", record: { failures: 3, notBefore: NOW + 20_000 } }],
    steps: [],
    wait: 20_000,
  },
  {
    so: "an unhealthy container is stopped, to be started anew",
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
  { so: "without a secret that it needs, no container is made", missing: MISSING_FILE, steps: [] },
  {
    so: "the image comes while a secret is waited for",
    imageAbsent: true,
    missing: MISSING_FILE,
    steps: ["pull example/engine:1"],
  },
  {
    so: "no image is pulled without the login that its registry asks for",
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
    so: "a running container is left alone when its secret goes",
    missing: MISSING_FILE,
    pieces: [{ is: "v2", ...READY }],
    steps: [],
  },
  {
    so: "the old one serves on while the new one waits for its secret",
    missing: MISSING_FILE,
    pieces: [{ is: "v1", ...READY }],
    steps: [],
  },
  { so: "a name that is not ours is refused, never removed", foreign: true, steps: [] },
  {
    so: "a refused create waits for its turn",
    record: { failures: 1, notBefore: NOW + 5000 },
    steps: [],
    wait: 5000,
  },
  {
    so: "the old one serves through a long pull, and is kept up",
    imageAbsent: true,
    pieces: [{ is: "v1", ...STOPPED }],
    steps: ["pull example/engine:1", "start v1"],
  },
  {
    so: "the old one is stopped once the new one is ready",
    pieces: [
      { is: "v2", ...READY },
      { is: "v1", ...READY },
    ],
    steps: ["stop v1 (superseded)"],
  },
  {
    so: "requests move over before the old one is stopped",
    pieces: [
      { is: "v2", ...JUST_READY },
      { is: "v1", ...READY },
    ],
    steps: [],
    wait: 1000,
  },
  {
    so: "an old one that still answers requests may finish",
    pieces: [
      { is: "v2", health: "ready", record: { readySince: NOW - 20_000, everReady: true } },
      { is: "v1", ...READY, busy: 2 },
    ],
    steps: [],
    wait: 1000,
  },
  {
    so: "but not for ever",
    pieces: [
      { is: "v2", health: "ready", record: { readySince: NOW - 30_000, everReady: true } },
      { is: "v1", ...READY, busy: 2 },
    ],
    steps: ["stop v1 (superseded)"],
  },
  {
    so: "a stopped old one is removed once the new one is ready",
    pieces: [
      { is: "v2", ...READY },
      { is: "v1", ...STOPPED },
    ],
    steps: ["remove v1"],
  },
  {
    so: "of several old ones the best is kept",
    pieces: [
      { is: "v0", ...STOPPED },
      { is: "v1", ...READY },
    ],
    steps: ["remove v0"],
  },
];

const stopFirst: readonly Case[] = [
  {
    so: "the new one is made before the old one stops",
    pieces: [{ is: "v1", ...READY }],
    steps: ["create v2 from example/engine:1"],
  },
  {
    so: "the old one stops before the new one starts",
    pieces: [
      { is: "v2", state: "created" },
      { is: "v1", ...READY },
    ],
    steps: ["stop v1 (superseded)"],
  },
  {
    so: "the old one may answer first what it was asked",
    pieces: [
      { is: "v2", state: "created", record: { seenSince: NOW - 1000 } },
      { is: "v1", ...READY, busy: 1 },
    ],
    steps: [],
    wait: 1000,
  },
  {
    so: "but not for ever",
    pieces: [
      { is: "v2", state: "created", record: { seenSince: NOW - 30_000 } },
      { is: "v1", ...READY, busy: 1 },
    ],
    steps: ["stop v1 (superseded)"],
  },
  {
    so: "then the new one starts",
    pieces: [
      { is: "v2", state: "created" },
      { is: "v1", ...STOPPED },
    ],
    steps: ["start v2"],
  },
  {
    so: "the old one is kept while the new one comes up",
    pieces: [{ is: "v2" }, { is: "v1", ...STOPPED }],
    steps: [],
  },
  {
    so: "a new one that ended before it was ready gives the place back",
    pieces: [
      { is: "v2", state: "exited", record: { failures: 1 } },
      { is: "v1", ...STOPPED },
    ],
    steps: ["start v1"],
  },
  {
    so: "a new one that cannot even be created gives the place back",
    record: { failures: 1 },
    pieces: [{ is: "v1", ...STOPPED }],
    steps: ["start v1"],
  },
  {
    so: "after a roll-back the old one is kept up, and the new one is not tried again",
    pieces: [
      { is: "v2", state: "exited", record: { failures: 1 } },
      { is: "v1", ...READY },
    ],
    steps: [],
  },
  {
    so: "a new one that still runs is stopped first in a roll-back",
    pieces: [
      { is: "v2", record: { failures: 1 } },
      { is: "v1", ...STOPPED },
    ],
    steps: ["stop v2 (rolled-back)"],
  },
  {
    so: "an old one that never worked is nothing to go back to",
    pieces: [
      { is: "v2", state: "exited", record: { failures: 1 } },
      { is: "v1", state: "exited", record: { failures: 2 } },
    ],
    steps: ["start v2"],
  },
  {
    so: "a crash after it was ready is no reason to roll back",
    pieces: [
      { is: "v2", state: "exited", record: { failures: 1, everReady: true } },
      { is: "v1", ...STOPPED },
    ],
    steps: ["start v2"],
  },
];

const startFirst: readonly Case[] = [
  {
    so: "the new one starts beside the old one",
    pieces: [
      { is: "v2", state: "created" },
      { is: "v1", ...READY },
    ],
    steps: ["start v2"],
  },
  {
    so: "the old one keeps its place while the new one comes up",
    pieces: [{ is: "v2" }, { is: "v1", ...READY }],
    steps: [],
  },
  {
    so: "an old one that ends meanwhile is started again",
    pieces: [{ is: "v2" }, { is: "v1", ...STOPPED }],
    steps: ["start v1"],
  },
  {
    so: "a new one that keeps failing never costs the old one its place",
    pieces: [
      { is: "v2", state: "exited", record: { failures: 2, notBefore: NOW + 10_000 } },
      { is: "v1", ...READY },
    ],
    steps: [],
    wait: 10_000,
  },
  {
    so: "nor is it tried for ever",
    pieces: [
      { is: "v2", state: "exited", record: { failures: 3, notBefore: NOW } },
      { is: "v1", ...READY },
    ],
    steps: [],
  },
  {
    so: "a new one that keeps failing goes on where there is nothing to go back to",
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

group("what no workload wants", () => {
  const orphan = (record: Partial<RunRecord>, piece: Partial<Piece> = {}): Picture => ({
    desired: { workloads: [] },
    pieces: [{ is: "v2", record, workloadId: "wkl_gone", ...piece }],
  });
  test("it is left alone at first: a desired state may be wrong for a moment (gpustack#3346)", () => {
    expect(planOf(orphan({ unwantedSince: NOW }))).toEqual({ steps: [], wait: 10_000 });
  });
  test("then stopped, then removed (gpustack#2935)", () => {
    expect(planOf(orphan({ unwantedSince: NOW - 10_000 })).steps).toEqual(["stop v2 (orphan)"]);
    expect(planOf(orphan({ unwantedSince: NOW - 10_000 }, { state: "exited" })).steps).toEqual(["remove v2"]);
  });
  test("one that still answers somebody gets 30 s for that, and no more", () => {
    const busy = (ms: number): Picture => orphan({ unwantedSince: NOW - ms }, { busy: 1 });
    expect(planOf(busy(10_000))).toEqual({ steps: [], wait: 1000 });
    expect(planOf(busy(29_500))).toEqual({ steps: [], wait: 500 });
    expect(planOf(busy(30_000)).steps).toEqual(["stop v2 (orphan)"]);
  });
  test("one whose state is unknown is left alone", () => {
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
