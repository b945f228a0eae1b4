import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { aWantedDaemon } from "../testing/wanted.ts";
import {
  nextUpdate,
  type Problem,
  STEPS,
  type UpdateEvent,
  type UpdateFacts,
  type UpdateState,
} from "./update-plan.ts";

const wanted = aWantedDaemon();
const again = aWantedDaemon({ request: "node:2" });
const later = aWantedDaemon({ request: "node:3", spreadSeconds: 100 });
const problem = (reason: Problem["reason"]): Problem => ({ reason, message: "why" });
const facts: UpdateFacts = { version: "1.0.0", arch: "x64", installed: true, last: null, random: 0.5 };
const next = (state: UpdateState, event: UpdateEvent, more: Partial<UpdateFacts> = {}): UpdateState =>
  nextUpdate(state, event, { ...facts, ...more });

/** All states by name. */
const STATES: readonly UpdateState[] = [
  { name: "idle" },
  { name: "waiting", wanted, attempt: 1, delayMs: 1000, problem: problem("download_failed") },
  ...STEPS.map((name) => ({ name, wanted, attempt: 1 })),
  { name: "refused", wanted, problem: problem("check_failed") },
];
const EVENTS: Readonly<Record<string, UpdateEvent>> = {
  nothing: { type: "asked", wanted: null },
  same: { type: "asked", wanted },
  anew: { type: "asked", wanted: again },
  later: { type: "asked", wanted: later },
  due: { type: "due" },
  done: { type: "done" },
  failed: { type: "failed", problem: problem("download_failed") },
  "failed for good": { type: "failed", problem: problem("check_failed") },
};

/** The next state of each state; `=` means unchanged. */
const TABLE: Readonly<Record<UpdateState["name"], Readonly<Record<string, string>>>> = {
  idle: {
    nothing: "idle",
    same: "downloading",
    anew: "downloading",
    later: "waiting",
    due: "=",
    done: "=",
    failed: "=",
    "failed for good": "=",
  },
  waiting: {
    nothing: "idle",
    same: "=",
    anew: "downloading",
    later: "waiting",
    due: "downloading",
    done: "=",
    failed: "=",
    "failed for good": "=",
  },
  downloading: {
    nothing: "idle",
    same: "=",
    anew: "downloading",
    later: "waiting",
    due: "=",
    done: "unpacking",
    failed: "waiting",
    "failed for good": "refused",
  },
  unpacking: {
    nothing: "idle",
    same: "=",
    anew: "downloading",
    later: "waiting",
    due: "=",
    done: "checking",
    failed: "waiting",
    "failed for good": "refused",
  },
  checking: {
    nothing: "idle",
    same: "=",
    anew: "downloading",
    later: "waiting",
    due: "=",
    done: "restarting",
    failed: "waiting",
    "failed for good": "refused",
  },
  restarting: {
    nothing: "=",
    same: "=",
    anew: "=",
    later: "=",
    due: "=",
    done: "=",
    failed: "waiting",
    "failed for good": "refused",
  },
  refused: {
    nothing: "idle",
    same: "=",
    anew: "downloading",
    later: "waiting",
    due: "=",
    done: "=",
    failed: "=",
    "failed for good": "=",
  },
};

describe.each(STATES)("an update that is $name", (state) => {
  test.each(Object.entries(TABLE[state.name]))("after %s: %s", (event, expected) => {
    const after = next(state, EVENTS[event] ?? { type: "due" });
    if (expected === "=") expect(after).toBe(state);
    else expect(after.name).toBe(expected);
  });
});

test("the diagram in docs/updates.md has every transition, and no other", () => {
  const ways = Object.entries(TABLE).flatMap(([from, row]) =>
    Object.values(row).map((to) => `${from} --> ${to === "=" ? from : to}`),
  );
  // Restarted or unchanged states are not in the diagram.
  const drawnWays = ways.filter((way) => !/^(\w+) --> \1$/.test(way) || way.startsWith("waiting"));
  const page = readFileSync(new URL("../../../../docs/updates.md", import.meta.url), "utf8");
  const drawn = Array.from(page.matchAll(/^ {2}(\w+ --> \w+):/gm), ([, way = ""]) => way);
  expect(drawn.toSorted()).toEqual([...new Set(drawnWays)].toSorted());
});

test("the table has every event for every state", () => {
  const events = Object.keys(EVENTS).toSorted();
  for (const row of Object.values(TABLE)) expect(Object.keys(row).toSorted()).toEqual(events);
});

describe("a requested update", () => {
  const asked = (changes: Partial<typeof wanted>, more: Partial<UpdateFacts> = {}): UpdateState =>
    next({ name: "idle" }, { type: "asked", wanted: aWantedDaemon(changes) }, more);

  test("is ignored if that version already runs", () => {
    expect(asked({ version: "1.0.0" })).toEqual({ name: "idle" });
  });

  test.each(["rolled_back", "refused"] as const)("that was %s is retried only on a new request", (state) => {
    const last = { wanted: wanted.version, request: wanted.request, state, message: "", since: "" };
    expect(asked({}, { last })).toEqual({ name: "idle" });
    expect(asked({ request: "node:2" }, { last })).toMatchObject({ name: "downloading" });
    expect(asked({ version: "2.0.1" }, { last })).toMatchObject({ name: "downloading" });
  });

  test("that was done once, but is not the running version, is done again", () => {
    const last = { wanted: wanted.version, request: wanted.request, state: "done", message: "", since: "" } as const;
    expect(asked({}, { last })).toMatchObject({ name: "downloading" });
  });

  test("begins at a random time within the spread", () => {
    expect(asked({ spreadSeconds: 100 })).toMatchObject({ name: "waiting", delayMs: 50_000, problem: null });
    expect(asked({ spreadSeconds: 100 }, { random: 0 })).toMatchObject({ name: "downloading" });
  });

  test("is refused with a reason if there is no build for this processor, or nowhere to install it", () => {
    expect(asked({}, { arch: "riscv64" })).toMatchObject({ name: "refused", problem: { reason: "no_build" } });
    expect(asked({}, { installed: false })).toMatchObject({ name: "refused", problem: { reason: "not_installed" } });
  });
});

describe("a step that fails", () => {
  const failing = (attempt: number, reason: Problem["reason"], random = 0): UpdateState =>
    next({ name: "downloading", wanted, attempt }, { type: "failed", problem: problem(reason) }, { random });

  test("is retried at growing intervals, up to a quarter of an hour", () => {
    const delays = [0, 1, 2, 3, 9, 99].map((attempt) => {
      const state = failing(attempt, "no_room");
      return state.name === "waiting" ? state.delayMs : state.name;
    });
    expect(delays).toEqual([15_000, 30_000, 60_000, 120_000, 450_000, 450_000]);
    expect(failing(99, "download_failed", 0.9999)).toMatchObject({ name: "waiting" });
  });

  test.each(["bad_download", "unpack_failed"] as const)("with %s is given up after the third attempt", (reason) => {
    expect([0, 1, 2].map((attempt) => failing(attempt, reason).name)).toEqual(["waiting", "waiting", "refused"]);
  });
});
