import { DomainError } from "@fairlead/protocol/errors";
import { describe, expect, test } from "vitest";
import { mayAskAgain, mayAskAnother, repeatDelay } from "./retry-rules.ts";
import { faultOf, NotReached, retryAfterSeconds, verdictOn } from "./upstream-faults.ts";

const JSON_TYPE = { "content-type": "application/json" };
describe("what a status means for another attempt", () => {
  test.each([
    [200, null],
    [400, null],
    [404, null],
    [422, null],
    [401, "failed"],
    [402, "failed"],
    [403, "failed"],
    [429, "busy"],
    [503, "busy"],
    [500, "failed"],
    [502, "failed"],
    [504, "failed"],
    [529, "failed"],
  ])("%i: %s", (status, kind) => {
    expect(verdictOn(status, JSON_TYPE).fault?.kind ?? null).toBe(kind);
  });

  test("a page that is no JSON is never the caller's to read", () => {
    expect(verdictOn(404, { "content-type": "text/html" })).toMatchObject({
      fault: { kind: "failed" },
      passable: false,
    });
  });
});

describe("when an upstream wants to be asked again", () => {
  test.each([
    [{ "retry-after": "7" }, 7],
    [{ "retry-after": "0.5" }, 0.5],
    [{ "retry-after-ms": "1500", "retry-after": "9" }, 1.5],
    [{ "x-ms-retry-after-ms": "250" }, 0.25],
    [{ "retry-after": "Wed, 21 Oct 2026 07:28:10 GMT", date: "Wed, 21 Oct 2026 07:28:00 GMT" }, 10],
    [{ "retry-after": "Wed, 21 Oct 2026 07:28:10 GMT" }, undefined],
    [{ "retry-after": "soon" }, undefined],
    [{ "retry-after": "-1" }, undefined],
    [{}, undefined],
  ])("%j: %s seconds", (headers, seconds) => {
    expect(retryAfterSeconds(headers)).toBe(seconds);
  });
});

describe("what may be done after an attempt that brought nothing", () => {
  const failed = new DomainError("upstream_failed", "It failed.");
  test.each([
    [faultOf(new NotReached("upstream_failed", "No connection.")), { another: true, evenIfItActs: true, again: true }],
    [faultOf(new DomainError("no_running_engine", "Not running.")), { another: true, evenIfItActs: true, again: true }],
    [{ kind: "busy", error: failed } as const, { another: true, evenIfItActs: true, again: true }],
    [{ kind: "failed", error: failed } as const, { another: true, evenIfItActs: true, again: false }],
    [faultOf(failed), { another: true, evenIfItActs: false, again: false }],
    [faultOf(new DomainError("upstream_timeout", "Silent.")), { another: false, evenIfItActs: false, again: false }],
  ])("%j: %j", ({ kind }, may) => {
    expect({
      another: mayAskAnother(kind, false),
      evenIfItActs: mayAskAnother(kind, true),
      again: mayAskAgain(kind),
    }).toEqual(may);
  });

  test("a wait is as long as the upstream asked for at least, and spread up to a ceiling that grows", () => {
    const asked = new DomainError("upstream_failed", "Busy.", { retryAfterSeconds: 3 });
    expect(repeatDelay({ kind: "busy", error: asked }, 0, 0.9)).toBe(3000);
    expect(repeatDelay({ kind: "not_reached", error: asked }, 0, 0.5)).toBe(125);
    expect(repeatDelay({ kind: "not_reached", error: asked }, 2, 0.5)).toBe(500);
    expect(repeatDelay({ kind: "not_reached", error: asked }, 20, 0.999)).toBeLessThanOrEqual(2000);
  });
});
