import { ANSWER, CHAT, HostStage } from "@fairlead/inference/host/host-stage.fixture";
import { chunk, DONE, JSON_TYPE, SSE } from "@fairlead/inference/relay/call-relay.fixture";
import { asAgent, asKey } from "@fairlead/inference/testing/callers";
import type { ScriptedUpstream } from "@fairlead/inference/testing/scripted-upstream";
import { DomainError } from "@fairlead/protocol/errors";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { callLimiter } from "./call-limiter.ts";
import { type CallLimits, NO_CALL_LIMITS } from "./call-limits.ts";
import { Limiter } from "./limiter.ts";

let stage: HostStage;
let upstream: ScriptedUpstream;
let project: CallLimits;
beforeEach(async () => {
  stage = new HostStage();
  project = NO_CALL_LIMITS;
  await stage.open({ limiter: callLimiter(new Limiter(stage.clock), { effective: () => project }) });
  upstream = stage.place("box");
});

afterEach(() => stage.close());
async function callAndAnswer(headers: Record<string, string> = {}, body: object = ANSWER): Promise<Response> {
  const arrived = upstream.nextCall();
  const answered = stage.chat();
  const far = await arrived;
  far.respond(200, { ...JSON_TYPE, ...headers });
  far.write(JSON.stringify(body));
  far.end();
  return answered;
}

const limitsOf = (response: Response): Record<string, string> =>
  Object.fromEntries([...response.headers].filter(([name]) => name.startsWith("x-ratelimit-")));
describe("limits on the inference host", () => {
  test("are reported in every response, and a rejection contains everything that a caller needs", async () => {
    stage.caller = asKey("prj_1", { requestsPerMinute: 2 });
    const told = (remaining: number, reset: string) => ({
      "x-ratelimit-limit-requests": "2",
      "x-ratelimit-remaining-requests": String(remaining),
      "x-ratelimit-reset-requests": reset,
    });
    const listed = await fetch(`${stage.url}/v1/models`, { headers: { authorization: "Bearer flk_x" } });
    expect(limitsOf(listed)).toEqual(told(2, "0s"));
    expect(limitsOf(await callAndAnswer())).toEqual(told(1, "61s"));
    const arrived = upstream.nextCall();
    const broken = stage.chat();
    (await arrived).cut();
    expect(limitsOf(await broken)).toEqual(told(0, "61s"));
    const refused = await stage.chat();
    expect(refused.status).toBe(429);
    expect(limitsOf(refused)).toEqual(told(0, "61s"));
    expect(refused.headers.get("retry-after")).toBe("61");
    expect(refused.headers.get("x-should-retry")).toBeNull();
    expect(await refused.json()).toMatchObject({
      error: { code: "rate_limit_exceeded", type: "rate_limit_error", source: "fairlead" },
    });
    expect(upstream.calls).toHaveLength(2);
  });

  test("replace the upstream's own headers in the response; without limits the upstream's are passed on", async () => {
    const theirs = { "x-ratelimit-limit-tokens": "9", "x-ratelimit-remaining-requests": "8" };
    expect(limitsOf(await callAndAnswer(theirs))).toEqual(theirs);
    project = { ...NO_CALL_LIMITS, requestsPerMinute: 5 };
    expect(limitsOf(await callAndAnswer(theirs))).not.toHaveProperty("x-ratelimit-limit-tokens");
  });

  test("count the tokens that a call actually used", async () => {
    project = { ...NO_CALL_LIMITS, tokensPerMinute: 1000 };
    const usage = { prompt_tokens: 700, completion_tokens: 200, total_tokens: 900 };
    await callAndAnswer({}, { ...ANSWER, usage });
    await vi.waitFor(() => expect(stage.ends).toHaveLength(1));
    const refused = await stage.chat();
    expect(refused.status).toBe(429);
    expect(refused.headers.get("x-ratelimit-remaining-tokens")).toBe("100");
    expect(((await refused.json()) as { error: { message: string } }).error.message).toContain("1,000 tokens");
  });

  test("tell the caller not to retry a call that can never fit", async () => {
    project = { ...NO_CALL_LIMITS, tokensPerMinute: 100 };
    const refused = await stage.chat();
    expect(refused.status).toBe(429);
    expect(refused.headers.get("x-should-retry")).toBe("false");
    expect(refused.headers.get("retry-after")).toBeNull();
  });

  test("count all keys of a project together", async () => {
    project = { ...NO_CALL_LIMITS, requestsPerMinute: 1 };
    expect((await callAndAnswer()).status).toBe(200);
    stage.caller = { ...asKey("prj_1"), keyId: "key_2" };
    expect((await stage.chat()).status).toBe(429);
  });

  test("apply to agents separately from keys, and count agents in their project", async () => {
    stage.caller = asAgent("prj_1", { requestsPerMinute: 1 });
    const answer = await callAndAnswer();
    expect([answer.status, answer.headers.get("x-ratelimit-remaining-requests")]).toEqual([200, "0"]);
    const refused = await stage.chat();
    expect(refused.status).toBe(429);
    expect(((await refused.json()) as { error: { message: string } }).error.message).toContain(
      "This agent's limit of 1",
    );
    stage.caller = asKey("prj_1", { requestsPerMinute: 1 });
    expect((await callAndAnswer()).status).toBe(200);
    project = { ...NO_CALL_LIMITS, requestsPerMinute: 1 };
    stage.caller = asAgent("prj_1");
    expect((await callAndAnswer()).status).toBe(200);
    expect((await stage.chat()).status).toBe(429);
  });
});

describe("a slot for a parallel call", () => {
  /** Whether another call is let in: one that is, ends at once. */
  async function isFree(): Promise<boolean> {
    const before = upstream.calls.length;
    const answered = stage.chat();
    const begun = vi.waitFor(() => expect(upstream.calls.length).toBeGreaterThan(before));
    begun.catch(() => undefined);
    await Promise.race([answered, begun]);
    const far = upstream.calls[before];
    far?.respond(200, JSON_TYPE);
    far?.write("{}");
    far?.end();
    return (await answered).status === 200;
  }

  beforeEach(() => {
    stage.caller = asKey("prj_1", { parallelCalls: 1 });
  });

  test.each<[string, (leave: () => void) => void]>([
    [
      "its response ends",
      () => {
        const [far] = upstream.calls;
        far?.respond(200, SSE);
        far?.write(chunk("Hi") + DONE);
        far?.end();
      },
    ],
    [
      "its upstream rejects it",
      () => {
        const [far] = upstream.calls;
        far?.respond(400, JSON_TYPE);
        far?.write("{}");
        far?.end();
      },
    ],
    ["its upstream breaks off before the response", () => upstream.calls[0]?.cut()],
    [
      "its upstream breaks off during the response",
      () => {
        const [far] = upstream.calls;
        far?.respond(200, SSE);
        far?.write(chunk("Hi"));
        far?.cut();
      },
    ],
    ["its caller disconnects before the response", (leave: () => void) => leave()],
    [
      "its caller disconnects during the response",
      (leave: () => void) => {
        const [far] = upstream.calls;
        far?.respond(200, SSE);
        far?.write(chunk("Hi"));
        leave();
      },
    ],
  ])("is released when %s", async (_name, end) => {
    const leaving = new AbortController();
    const answered = stage.chat({ ...CHAT, stream: true }, { signal: leaving.signal });
    const read = answered.then((response) => response.text()).catch(() => "");
    await vi.waitFor(() => expect(upstream.calls).toHaveLength(1));
    expect(await isFree()).toBe(false);
    end(() => leaving.abort());
    await read;
    await vi.waitFor(() => expect(stage.host?.load.callsInFlight).toBe(0));
    expect(await isFree()).toBe(true);
  });

  test("is released when the call is rejected after it was admitted", async () => {
    await stage.close();
    stage = new HostStage();
    stage.caller = asKey("prj_1", { parallelCalls: 1 });
    let poor = true;
    const hold = { cover: () => null, settle: () => 0 };
    await stage.open({
      limiter: callLimiter(new Limiter(stage.clock), { effective: () => project }),
      billing: {
        open: () =>
          poor ? Promise.reject(new DomainError("insufficient_balance", "No money.")) : Promise.resolve(hold),
      },
    });
    upstream = stage.place("box");
    const refused = await stage.chat();
    expect(refused.status).toBe(402);
    poor = false;
    expect((await callAndAnswer()).status).toBe(200);
  });
});
