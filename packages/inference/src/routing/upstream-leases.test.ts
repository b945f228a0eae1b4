import { TestClock } from "@fairlead/protocol/testing/test-clock";
import { beforeEach, describe, expect, test } from "vitest";
import type { Candidate } from "../calls/model-catalog.ts";
import { PLACE } from "../relay/call-relay.fixture.ts";
import { ScriptedUpstream } from "../testing/scripted-upstream.ts";
import { FAILURES_TO_OPEN, OPEN_MS } from "./breaker.ts";
import { UpstreamLeases } from "./upstream-leases.ts";

let clock: TestClock;
let places: UpstreamLeases;
beforeEach(() => {
  clock = new TestClock();
  places = new UpstreamLeases(clock);
});

const place = (key: string, rest: Partial<Candidate> = {}): Candidate => ({
  ...PLACE,
  key,
  upstreamId: `node:${key}`,
  kind: "node",
  model: "m",
  protocols: ["chat"],
  open: () => new ScriptedUpstream(),
  ...rest,
});

const [a, b, c] = [place("a"), place("b"), place("c")];
const order = (candidates: readonly Candidate[], projectId = "prj_1"): string =>
  places
    .choose({ projectId, candidates, dialect: "chat" })
    .map(({ key }) => key)
    .join("");
const begin = (candidate: Candidate, projectId = "prj_1") => places.begin(projectId, candidate);
function fail(candidate: Candidate, times: number, projectId = "prj_1"): void {
  for (let n = 0; n < times; n++) {
    const use = begin(candidate, projectId);
    use.failed();
    use.end();
  }
}

describe("the choice among upstreams of equal rank", () => {
  test("prefers the upstream with the fewest calls in flight", () => {
    const first = begin(a);
    begin(b);
    begin(b);
    expect(order([a, b, c])).toBe("cab");
    first.end();
    first.end();
    begin(c);
    expect(order([a, b, c])).toBe("acb");
  });

  test("rotates if they are equally busy", () => {
    const chosen = [];
    for (let n = 0; n < 6; n++) {
      const [first = a] = places.choose({ projectId: "prj_1", candidates: [a, b, c], dialect: "chat" });
      chosen.push(first.key);
      begin(first).end();
    }
    expect(chosen.join("")).toBe("abcabc");
  });

  test("counts calls in flight of all projects and models", () => {
    begin({ ...a, model: "other" }, "prj_2");
    expect(order([a, b])).toBe("ba");
  });
});

test("the project's order comes first, then upstreams that support the caller's dialect", () => {
  const converts = place("x", { protocols: ["responses"] });
  const later = place("z", { rank: 1 });
  begin(a);
  expect(order([later, converts, a])).toBe("axz");
});

describe("an upstream that failed several times in a row", () => {
  test("is not called while others are available, and is probed later", () => {
    fail(a, FAILURES_TO_OPEN);
    expect(order([a, b])).toBe("b");
    expect([...places.breakers()]).toEqual([{ upstreamId: "node:a", state: "open" }]);
    clock.advance(OPEN_MS);
    expect([...places.breakers()]).toEqual([{ upstreamId: "node:a", state: "half_open" }]);
    expect(order([a, b])).toContain("a");
    const probe = begin(a);
    expect(order([a, b])).toBe("b");
    probe.answered();
    expect(order([a, b])).toContain("a");
    expect([...places.breakers()]).toEqual([]);
  });

  test("makes calls fail with the earliest retry time if there is no other", () => {
    fail(a, FAILURES_TO_OPEN);
    clock.advance(2000);
    fail(b, FAILURES_TO_OPEN);
    expect(() => order([a, b])).toThrow(expect.objectContaining({ code: "unavailable", retryAfterSeconds: 3 }));
    clock.advance(3000);
    expect(order([a, b])).toBe("a");
  });

  test("is unavailable only to the project whose calls failed", () => {
    fail(a, FAILURES_TO_OPEN);
    expect(() => order([a])).toThrow();
    expect(order([a], "prj_2")).toBe("a");
  });

  test("stays available if it responded in between", () => {
    fail(a, FAILURES_TO_OPEN - 1);
    begin(a).answered();
    fail(a, FAILURES_TO_OPEN - 1);
    expect(order([a])).toBe("a");
  });

  test("is probed by another call if the first one was abandoned", () => {
    fail(a, FAILURES_TO_OPEN);
    clock.advance(OPEN_MS);
    const probe = begin(a);
    expect(() => order([a])).toThrow(expect.objectContaining({ code: "unavailable" }));
    probe.end();
    expect(order([a])).toBe("a");
  });
});

test("an upstream that asks for a pause is called last until then, for that model only, and reports the reason", () => {
  const better = place("a", { rank: 0 });
  const worse = place("b", { rank: 1 });
  begin(better).rest({ reason: "overloaded", ms: 20_000 });
  expect(order([better, worse])).toBe("ba");
  expect(order([{ ...better, model: "other" }, worse])).toBe("ab");
  clock.advance(5000);
  expect(places.restOf(better)).toEqual({ reason: "overloaded", ms: 15_000 });
  expect(places.restOf(worse)).toBeNull();
  clock.advance(15_000);
  expect(places.restOf(better)).toBeNull();
  expect(order([better, worse])).toBe("ab");
});
