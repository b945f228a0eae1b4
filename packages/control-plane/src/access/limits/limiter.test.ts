import type { Permit } from "@fairlead/inference/ports/permit";
import { TestClock } from "@fairlead/protocol/testing/test-clock";
import fc from "fast-check";
import { beforeEach, describe, expect, test } from "vitest";
import { type CallLimits, NO_CALL_LIMITS } from "./call-limits.ts";
import { Limiter } from "./limiter.ts";

let clock: TestClock;
let limiter: Limiter;

beforeEach(() => {
  clock = new TestClock();
  limiter = new Limiter(clock);
});

interface Call {
  readonly key?: Partial<CallLimits>;
  readonly project?: Partial<CallLimits>;
  readonly input?: number;
  readonly output?: number;
  readonly excess?: number;
  readonly keyId?: string;
}

function admit({ key = {}, project = {}, input = 10, output = 0, excess = 0, keyId = "key_1" }: Call): Permit {
  return limiter.admit({
    caller: { kind: "key", id: keyId, limits: { ...NO_CALL_LIMITS, ...key } },
    project: { id: "prj_1", limits: { ...NO_CALL_LIMITS, ...project } },
    inputTokens: input,
    outputTokens: output,
    excessTokens: excess,
  });
}

describe("calls without a limit", () => {
  test("get no headers and leave no state behind", () => {
    expect(admit({})).toMatchObject({ headers: {}, refusal: null });
    expect(limiter.meters).toBe(0);
  });
});

describe("a limit on requests per minute", () => {
  const key = { requestsPerMinute: 2 };

  test("rejects the next request, saying which limit is reached and when to retry", () => {
    admit({ key });
    clock.advance(10_000);
    admit({ key });
    clock.advance(5000);
    const { refusal, headers } = admit({ key });
    expect(refusal).toMatchObject({ code: "rate_limit_exceeded", retryAfterSeconds: 46, final: false });
    expect(refusal?.message).toBe("This key's limit of 2 requests per minute has 0 left. Retry in 46 seconds.");
    expect(headers).toEqual({
      "x-ratelimit-limit-requests": "2",
      "x-ratelimit-remaining-requests": "0",
      "x-ratelimit-reset-requests": "56s",
    });
    clock.advance(46_000);
    expect(admit({ key }).refusal).toBeNull();
  });

  test("is not used up by rejected calls", () => {
    admit({ key });
    admit({ key });
    for (let n = 0; n < 5; n++) expect(admit({ key }).refusal).not.toBeNull();
    clock.advance(61_000);
    expect(admit({ key }).headers["x-ratelimit-remaining-requests"]).toBe("1");
    expect(limiter.refusals).toEqual(new Map([["key requests", 5]]));
  });

  test("applies to each key separately, and to all keys of a project together", () => {
    const project = { requestsPerMinute: 3 };
    admit({ key, project });
    admit({ key, project });
    expect(admit({ key, project }).refusal?.message).toContain("This key's limit of 2");
    expect(admit({ key, project, keyId: "key_2" }).refusal).toBeNull();
    expect(admit({ key, project, keyId: "key_2" }).refusal?.message).toContain("This project's limit of 3");
  });

  test("is reported if it is closer to being reached than another", () => {
    const told = admit({ key: { requestsPerMinute: 100 }, project: { requestsPerMinute: 50 } });
    expect(told.headers["x-ratelimit-limit-requests"]).toBe("50");
  });
});

describe("a limit on tokens per minute", () => {
  const project = { tokensPerMinute: 1000 };

  test("counts the estimate before the call and the actual usage after it", () => {
    const first = admit({ project, input: 300, output: 300 });
    expect(first.headers["x-ratelimit-remaining-tokens"]).toBe("400");
    expect(admit({ project, input: 401 }).refusal?.message).toContain("has 400 left, and this call needs");
    first.end(320);
    expect(admit({ project, input: 680 }).headers["x-ratelimit-remaining-tokens"]).toBe("0");
  });

  test("returns the whole estimate if nothing was generated", () => {
    admit({ project, input: 900 }).end(null);
    expect(admit({ project, input: 1000 }).refusal).toBeNull();
  });

  test("counts a long response while it is generated, and admits no call until the debt is gone", () => {
    const long = admit({ project, input: 100 });
    for (let tokens = 0; tokens <= 2000; tokens += 10) long.generated(tokens);
    expect(admit({ project, input: 1 })).toMatchObject({
      refusal: { code: "rate_limit_exceeded", retryAfterSeconds: 61 },
      headers: { "x-ratelimit-remaining-tokens": "0" },
    });
    clock.advance(30_000);
    long.end(2110);
    clock.advance(31_000);
    expect(admit({ project, input: 1 }).refusal).toBeNull();
  });

  test("permanently rejects a call that can never fit", () => {
    const { refusal } = admit({ project, input: 1001 });
    expect(refusal).toMatchObject({ final: true, retryAfterSeconds: undefined });
    expect(refusal?.message).toContain("This project's limit is 1,000 tokens per minute");
  });
});

describe("a limit on parallel calls", () => {
  const key = { parallelCalls: 1 };

  test("releases the slot at the end, once", () => {
    const first = admit({ key });
    expect(admit({ key }).refusal).toMatchObject({ code: "rate_limit_exceeded", retryAfterSeconds: 1 });
    first.end(null);
    first.end(5);
    const second = admit({ key });
    expect(second.refusal).toBeNull();
    expect(admit({ key }).refusal?.message).toContain("one call at a time");
  });
});

test("drops idle keys, and none with running calls", () => {
  const key = { requestsPerMinute: 5, parallelCalls: 5 };
  admit({ key, keyId: "key_busy" });
  for (let n = 0; n < 1100; n++) admit({ key, keyId: `key_${n}` }).end(null);
  clock.advance(61_000);
  for (let n = 0; n < 1100; n++) admit({ key, keyId: `other_${n}` }).end(null);
  expect(limiter.meters).toBeLessThan(1400);
  for (let n = 0; n < 4; n++) admit({ key, keyId: "key_busy" });
  expect(admit({ key, keyId: "key_busy" }).refusal?.message).toContain("5 calls at a time");
});

describe("any sequence of calls", () => {
  const event = fc.oneof(
    fc.record({ kind: fc.constant("call" as const), tokens: fc.integer({ min: 1, max: 60 }) }),
    fc.record({ kind: fc.constant("end" as const), which: fc.nat(), tokens: fc.option(fc.nat({ max: 60 })) }),
    fc.record({ kind: fc.constant("pass" as const), ms: fc.nat({ max: 40_000 }) }),
  );

  test("exceeds no limit on requests or estimated tokens in any minute, nor on parallel calls", () => {
    const limits = { requestsPerMinute: 5, tokensPerMinute: 100, parallelCalls: 3 };
    fc.assert(
      fc.property(fc.array(event, { maxLength: 80 }), (events) => {
        const own = new TestClock();
        const tested = new Limiter(own);
        const let_in: { at: number; tokens: number }[] = [];
        const running: Permit[] = [];
        for (const step of events) {
          if (step.kind === "pass") own.advance(step.ms);
          else if (step.kind === "end")
            running.splice(step.which % Math.max(1, running.length), 1)[0]?.end(step.tokens);
          else {
            const permit = tested.admit({
              caller: { kind: "key", id: "key_1", limits },
              project: { id: "prj_1", limits: NO_CALL_LIMITS },
              inputTokens: step.tokens,
              outputTokens: 0,
              excessTokens: 0,
            });
            if (permit.refusal !== null) continue;
            running.push(permit);
            let_in.push({ at: own.now(), tokens: step.tokens });
          }
          const last = let_in.filter(({ at }) => at > own.now() - 60_000);
          expect(last.length).toBeLessThanOrEqual(5);
          expect(running.length).toBeLessThanOrEqual(3);
        }
        // Every place comes back.
        for (const permit of running) permit.end(0);
        own.advance(61_000);
        const again = Array.from({ length: 3 }, () =>
          tested.admit({
            caller: { kind: "key", id: "key_1", limits },
            project: { id: "prj_1", limits: NO_CALL_LIMITS },
            inputTokens: 1,
            outputTokens: 0,
            excessTokens: 0,
          }),
        );
        expect(again.map(({ refusal }) => refusal)).toEqual([null, null, null]);
      }),
    );
  });

  test("never uses more tokens in a minute than the limit, if the calls end as estimated", () => {
    const call = fc.record({ tokens: fc.integer({ min: 1, max: 60 }), pass: fc.nat({ max: 30_000 }) });
    fc.assert(
      fc.property(fc.array(call, { maxLength: 60 }), (calls) => {
        const own = new TestClock();
        const tested = new Limiter(own);
        const used: { at: number; tokens: number }[] = [];
        for (const { tokens, pass } of calls) {
          own.advance(pass);
          const limits = { ...NO_CALL_LIMITS, tokensPerMinute: 100 };
          const permit = tested.admit({
            caller: null,
            project: { id: "prj_1", limits },
            inputTokens: tokens,
            outputTokens: 0,
            excessTokens: 0,
          });
          if (permit.refusal === null) used.push({ at: own.now(), tokens });
          permit.end(tokens);
          const last = used.filter(({ at }) => at > own.now() - 60_000);
          expect(last.reduce((sum, { tokens: part }) => sum + part, 0)).toBeLessThanOrEqual(100);
        }
      }),
    );
  });
});
