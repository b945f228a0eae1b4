import { DomainError } from "@fairlead/protocol/errors";
import { describe, expect, test } from "vitest";
import { mayAskAgain, mayAskAnother, repeatDelay } from "./retry-rules.ts";
import { classifyFailure, faultOf, NotReached, nameUpstream, type UpstreamVerdict } from "./upstream-faults.ts";

const JSON_TYPE = { "content-type": "application/json" };

const judged = (status: number, headers: Record<string, string>, stream = false): UpstreamVerdict =>
  classifyFailure({ status, headers, retryAfterSeconds: undefined }, stream);

describe("the fault that a status stands for", () => {
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

  test("is a failure that is not passed to the caller if the body is not JSON", () => {
    expect(judged(404, { "content-type": "text/html" })).toMatchObject({
      fault: { kind: "failed" },
      passable: false,
    });
  });
});

describe("a response with status 200", () => {
  test.each([
    ["application/json", false],
    ["application/json; charset=utf-8", true],
    ["application/problem+json", false],
    ["text/event-stream", true],
    ["text/plain", false],
    ["", true],
  ])("is accepted with the type `%s` (stream: %s)", (type, stream) => {
    expect(judged(200, { "content-type": type }, stream).fault).toBeNull();
  });

  test.each([
    ["text/html; charset=utf-8", false, "returned text/html instead of JSON"],
    ["text/html", true, "returned text/html instead of an event stream"],
    ["text/event-stream", false, "returned text/event-stream instead of JSON"],
    ["image/png", false, "returned image/png instead of JSON"],
  ])("is a failure with the type `%s` (stream: %s)", (type, stream, message) => {
    const { fault, passable } = judged(200, { "content-type": type }, stream);
    expect(fault).toMatchObject({ kind: "failed", error: { code: "upstream_failed", message } });
    expect(passable).toBe(false);
  });
});

describe("a failure of an upstream", () => {
  test("names the upstream", () => {
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

  test("does not include errors of the caller or of the host", () => {
    for (const error of [
      new DomainError("invalid_request", "No.", { source: "provider" }),
      new DomainError("insufficient_balance", "No."),
    ]) {
      expect(nameUpstream(error, "openai")).toBe(error);
    }
  });
});

describe("the retry policy after an attempt without a response", () => {
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

  test("waits at least as long as the upstream asked, with jitter up to a ceiling that grows", () => {
    const asked = new DomainError("upstream_failed", "Busy.", { retryAfterSeconds: 3 });
    expect(repeatDelay({ kind: "busy", error: asked }, 0, 0.9)).toBe(3000);
    expect(repeatDelay({ kind: "not_reached", error: asked }, 0, 0.5)).toBe(125);
    expect(repeatDelay({ kind: "not_reached", error: asked }, 2, 0.5)).toBe(500);
    expect(repeatDelay({ kind: "not_reached", error: asked }, 20, 0.999)).toBeLessThanOrEqual(2000);
  });
});
