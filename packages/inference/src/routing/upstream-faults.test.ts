import { DomainError } from "@fairlead/protocol/errors";
import { describe, expect, test } from "vitest";
import { mayAskAgain, mayAskAnother, repeatDelay } from "./retry-rules.ts";
import { classifyFailure, faultOf, NotReached, nameUpstream, type UpstreamVerdict } from "./upstream-faults.ts";

const JSON_TYPE = { "content-type": "application/json" };

const judged = (status: number, headers: Record<string, string>, stream = false): UpstreamVerdict =>
  classifyFailure({ status, headers, retryAfterSeconds: undefined }, stream);

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
    [529, "busy"],
  ])("%i: %s", (status, kind) => {
    expect(judged(status, JSON_TYPE).fault?.kind ?? null).toBe(kind);
  });

  test("a page that is no JSON is never the caller's to read", () => {
    expect(judged(404, { "content-type": "text/html" })).toMatchObject({
      fault: { kind: "failed" },
      passable: false,
    });
  });
});

describe("a success", () => {
  test.each([
    ["application/json", false],
    ["application/json; charset=utf-8", true],
    ["application/problem+json", false],
    ["text/event-stream", true],
    ["text/plain", false],
    ["", true],
  ])("of type `%s` may be an answer (stream: %s)", (type, stream) => {
    expect(judged(200, { "content-type": type }, stream).fault).toBeNull();
  });

  test.each([
    ["text/html; charset=utf-8", false, "returned text/html instead of JSON"],
    ["text/html", true, "returned text/html instead of an event stream"],
    ["text/event-stream", false, "returned text/event-stream instead of JSON"],
    ["image/png", false, "returned image/png instead of JSON"],
  ])("of type `%s` is none (stream: %s)", (type, stream, message) => {
    const { fault, passable } = judged(200, { "content-type": type }, stream);
    expect(fault).toMatchObject({ kind: "failed", error: { code: "upstream_failed", message } });
    expect(passable).toBe(false);
  });
});

describe("a failure of an upstream", () => {
  test("names it", () => {
    const cause = new Error("inner");
    const error = new DomainError("upstream_failed", "connection refused", { retryAfterSeconds: 3, cause });
    expect(nameUpstream(error, "openai")).toMatchObject({
      code: "upstream_failed",
      message: "openai: connection refused",
      retryAfterSeconds: 3,
      source: "provider",
      cause,
    });
    expect(nameUpstream(new DomainError("upstream_failed", "The upstream broke off."), "a").message).toBe(
      "a: broke off.",
    );
  });

  test("is not what the caller did, or what we did", () => {
    for (const error of [
      new DomainError("invalid_request", "No.", { source: "provider" }),
      new DomainError("insufficient_balance", "No."),
    ]) {
      expect(nameUpstream(error, "openai")).toBe(error);
    }
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
