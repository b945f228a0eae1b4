import { describe, expect, test } from "vitest";
import { judgeTrial, QUIET_SHARE, STEADY_MS, startOf, type TrialFacts } from "./trial-rules.ts";
import type { EndedUpdate, Trial, UpdateRecord } from "./update-record.ts";

const DEADLINE_MS = 300_000;
const QUIET_MS = QUIET_SHARE * DEADLINE_MS;
const both = { link: true, engine: true };
const healthy: TrialFacts = { upMs: STEADY_MS, deadlineMs: DEADLINE_MS, linked: true, round: "answered" };

describe("a version on trial", () => {
  const CASES: readonly [what: string, before: Trial["before"], facts: Partial<TrialFacts>, verdict: string][] = [
    ["that does all that the one before did", both, {}, "good"],
    ["is not judged in its first moments", both, { upMs: STEADY_MS - 1 }, "wait"],
    ["without the control plane has time", both, { linked: false, upMs: DEADLINE_MS - 1 }, "wait"],
    ["without the control plane fails in the end", both, { linked: false, upMs: DEADLINE_MS }, "bad"],
    ["that looked at nothing fails in the end", both, { round: "none", upMs: DEADLINE_MS }, "bad"],
    ["that cannot ask Docker fails in the end", both, { round: "away", upMs: DEADLINE_MS }, "bad"],
    ["need not reach Docker where it was away before", { link: true, engine: false }, { round: "away" }, "good"],
    ["must look all the same", { link: true, engine: false }, { round: "none", upMs: DEADLINE_MS }, "bad"],
    [
      "need not reach a control plane that was away before, for a while",
      { link: false, engine: true },
      { linked: false, upMs: QUIET_MS },
      "good",
    ],
    ["waits for it until then", { link: false, engine: true }, { linked: false, upMs: QUIET_MS - 1 }, "wait"],
  ];
  test.each(CASES.map(([what, ...rest]) => ({ what, rest })))("$what", ({ rest: [before, facts, verdict] }) => {
    expect(judgeTrial({ before }, { ...healthy, ...facts }).verdict).toBe(verdict);
  });

  test("that fails says all that it lacked", () => {
    expect(judgeTrial({ before: both }, { ...healthy, upMs: DEADLINE_MS, linked: false, round: "away" })).toEqual({
      verdict: "bad",
      reason: "within 300 s it did not reach the control plane, and could not connect to Docker",
    });
  });
});

describe("a program that starts", () => {
  const trial: Trial = { from: "1", to: "2", request: "r", before: both, failed: null };
  const done: EndedUpdate = { wanted: "2", request: "r", state: "done", message: "", since: "then" };
  const start = (record: UpdateRecord, version: string, turnedBack = false) =>
    startOf(record, { version, turnedBack, now: "now" });
  const rolledBack = (message: string) => ({ wanted: "2", request: "r", state: "rolled_back", message, since: "now" });

  test("and was never updated has nothing to do", () => {
    const record = { trial: null, last: null };
    expect(start(record, "1")).toEqual({ kind: "settled", record, rolledBack: null });
  });

  test("is on trial where it is the new version", () => {
    expect(start({ trial, last: null }, "2")).toMatchObject({ kind: "on-trial", trial });
  });

  test("is the old version, and the switch never came: it is free to try again", () => {
    expect(start({ trial, last: null }, "1")).toEqual({
      kind: "settled",
      record: { trial: null, last: null },
      rolledBack: null,
    });
  });

  test("is the old version after the guard turned back: the new one did not stay up", () => {
    const last = rolledBack("it failed 3 times during its trial");
    expect(start({ trial, last: null }, "1", true)).toEqual({
      kind: "settled",
      record: { trial: null, last },
      rolledBack: last,
    });
  });

  test("is the old version after the new one gave up: it knows why", () => {
    const failed = { ...trial, failed: "no link" };
    expect(start({ trial: failed, last: null }, "1", true)).toMatchObject({ rolledBack: rolledBack("no link") });
  });

  test("is the old version although the new one was proven: the guard was still there, and turned back", () => {
    expect(start({ trial: null, last: done }, "1", true)).toMatchObject({ rolledBack: { wanted: "2", request: "r" } });
  });

  test("is a version that somebody installed by hand meanwhile: the trial is over without a word against the new one", () => {
    expect(start({ trial, last: null }, "3")).toMatchObject({ kind: "settled", rolledBack: null });
  });
});
