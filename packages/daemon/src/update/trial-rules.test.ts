import { describe, expect, test } from "vitest";
import { judgeTrial, QUIET_SHARE, STEADY_MS, startOf, type TrialFacts } from "./trial-rules.ts";
import type { EndedUpdate, Trial, UpdateRecord } from "./update-record.ts";

const DEADLINE_MS = 300_000;
const QUIET_MS = QUIET_SHARE * DEADLINE_MS;
const both = { link: true, engine: true };
const healthy: TrialFacts = { upMs: STEADY_MS, deadlineMs: DEADLINE_MS, linked: true, round: "answered" };

describe("a version on trial", () => {
  const CASES: readonly [what: string, before: Trial["before"], facts: Partial<TrialFacts>, verdict: string][] = [
    ["that does everything its predecessor did passes", both, {}, "good"],
    ["is not judged in its first moments", both, { upMs: STEADY_MS - 1 }, "wait"],
    ["without the control plane is given time", both, { linked: false, upMs: DEADLINE_MS - 1 }, "wait"],
    ["without the control plane fails eventually", both, { linked: false, upMs: DEADLINE_MS }, "bad"],
    ["that completed no round fails eventually", both, { round: "none", upMs: DEADLINE_MS }, "bad"],
    ["that cannot reach Docker fails eventually", both, { round: "away", upMs: DEADLINE_MS }, "bad"],
    ["need not reach Docker if it was unavailable before", { link: true, engine: false }, { round: "away" }, "good"],
    [
      "must still complete a round if Docker was unavailable before",
      { link: true, engine: false },
      { round: "none", upMs: DEADLINE_MS },
      "bad",
    ],
    [
      "passes after a while without a control plane that was unavailable before",
      { link: false, engine: true },
      { linked: false, upMs: QUIET_MS },
      "good",
    ],
    [
      "waits until then for a control plane that was unavailable before",
      { link: false, engine: true },
      { linked: false, upMs: QUIET_MS - 1 },
      "wait",
    ],
  ];
  test.each(CASES.map(([what, ...rest]) => ({ what, rest })))("$what", ({ rest: [before, facts, verdict] }) => {
    expect(judgeTrial({ before }, { ...healthy, ...facts }).verdict).toBe(verdict);
  });

  test("that fails reports everything that was missing", () => {
    expect(judgeTrial({ before: both }, { ...healthy, upMs: DEADLINE_MS, linked: false, round: "away" })).toEqual({
      verdict: "bad",
      reason: "within 300 s it did not reach the control plane, and could not connect to Docker",
    });
  });
});

describe("a starting program", () => {
  const trial: Trial = { from: "1", to: "2", request: "r", before: both, failed: null };
  const done: EndedUpdate = { wanted: "2", request: "r", state: "done", message: "", since: "then" };
  const start = (record: UpdateRecord, version: string, turnedBack = false) =>
    startOf(record, { version, turnedBack, now: "now" });
  const rolledBack = (message: string) => ({ wanted: "2", request: "r", state: "rolled_back", message, since: "now" });

  test("that was never updated has nothing to do", () => {
    const record = { trial: null, last: null };
    expect(start(record, "1")).toEqual({ kind: "settled", record, rolledBack: null });
  });

  test("is on trial if it is the new version", () => {
    expect(start({ trial, last: null }, "2")).toMatchObject({ kind: "on-trial", trial });
  });

  test("of the old version, if the switch never happened, is free to try again", () => {
    expect(start({ trial, last: null }, "1")).toEqual({
      kind: "settled",
      record: { trial: null, last: null },
      rolledBack: null,
    });
  });

  test("of the old version, after the guard turned back, records that the new version did not stay up", () => {
    const last = rolledBack("it failed 3 times during its trial");
    expect(start({ trial, last: null }, "1", true)).toEqual({
      kind: "settled",
      record: { trial: null, last },
      rolledBack: last,
    });
  });

  test("of the old version, after the new version gave up, knows the reason", () => {
    const failed = { ...trial, failed: "no link" };
    expect(start({ trial: failed, last: null }, "1", true)).toMatchObject({ rolledBack: rolledBack("no link") });
  });

  test("of the old version records a rollback even of a proven version, if the guard turned back", () => {
    expect(start({ trial: null, last: done }, "1", true)).toMatchObject({ rolledBack: { wanted: "2", request: "r" } });
  });

  test("of a version that was installed by hand meanwhile ends the trial without blaming the new version", () => {
    expect(start({ trial, last: null }, "3")).toMatchObject({ kind: "settled", rolledBack: null });
  });
});
