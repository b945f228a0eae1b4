import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ANSWER, HostStage } from "../host/host-stage.fixture.ts";
import { JSON_TYPE } from "../relay/call-relay.fixture.ts";
import type { FarEnd } from "../upstreams/upstream.contract.ts";

/** Upstreams that say that they have too much to do, and when they are back. */

let stage: HostStage;
beforeEach(async () => {
  stage = new HostStage();
  await stage.open();
});
afterEach(() => stage.close());

type Headers = Readonly<Record<string, string>>;

const refusing =
  (status: number, headers: Headers = {}, error: object = { message: "No." }) =>
  (far: FarEnd): void => {
    far.respond(status, { ...JSON_TYPE, ...headers });
    far.write(JSON.stringify({ error }));
    far.end();
  };

function answer(far: FarEnd): void {
  far.respond(200, JSON_TYPE);
  far.write(JSON.stringify(ANSWER));
  far.end();
}

const inThirtySeconds = (): Headers => ({ "retry-after": new Date(stage.clock.now() + 30_000).toUTCString() });

describe("an upstream that says when to retry", () => {
  test("is not retried before the date it sends, which its caller gets", async () => {
    const upstream = stage.place("box", (far) => refusing(429, inThirtySeconds())(far));
    const answered = await stage.chat();
    expect(answered.status).toBe(429);
    expect(Number(answered.headers.get("retry-after"))).toBeGreaterThan(28);
    expect(Number(answered.headers.get("retry-after"))).toBeLessThanOrEqual(31);
    expect(upstream.calls).toHaveLength(1);
  });

  test.each([
    [429, 429, "rate_limit_exceeded"],
    [503, 503, "overloaded"],
    [529, 503, "overloaded"],
  ])("is paused until then for all calls (%i)", async (status, answered, code) => {
    let play = refusing(status, { "retry-after": "30" }, { message: "Overloaded." });
    const upstream = stage.place("box", (far) => play(far));
    expect((await stage.chat()).status).toBe(answered);
    play = answer;
    stage.clock.advance(10_000);
    const meanwhile = await stage.chat();
    expect(meanwhile.status).toBe(answered);
    expect(meanwhile.headers.get("retry-after")).toBe("20");
    expect(await meanwhile.json()).toMatchObject({
      error: { code, source: "provider", message: "node:box: asked to be called again after 20 s" },
    });
    expect(upstream.calls).toHaveLength(1);
    stage.clock.advance(20_000);
    expect((await stage.chat()).status).toBe(200);
  });

  test("leaves its calls to other upstreams during the pause", async () => {
    const resting = stage.place("a", refusing(429, { "retry-after": "30" }), { rank: 0 });
    stage.place("b", answer, { rank: 1 });
    for (const attempts of ["2", "1", "1"]) {
      const answered = await stage.chat();
      expect(answered.headers.get("x-fairlead-upstream")).toBe("node:b");
      expect(answered.headers.get("x-fairlead-attempts")).toBe(attempts);
    }
    expect(resting.calls).toHaveLength(1);
  });

  test("makes its call and new calls wait if the pause is short", async () => {
    let busy = true;
    const upstream = stage.place("box", (far) => (busy ? refusing(429, { "retry-after-ms": "120" }) : answer)(far));
    const first = stage.chat();
    await expect.poll(() => upstream.calls.length).toBe(1);
    busy = false;
    const second = stage.chat();
    expect((await first).status).toBe(200);
    expect((await second).status).toBe(200);
    expect(upstream.calls).toHaveLength(3);
  });

  test("is paused for at most an hour", async () => {
    let play = refusing(429, { "retry-after": "99999999" });
    stage.place("box", (far) => play(far));
    expect((await stage.chat()).headers.get("retry-after")).toBe("3600");
    play = answer;
    stage.clock.advance(3_600_000);
    expect((await stage.chat()).status).toBe(200);
  });
});

describe("a caller", () => {
  test.each<[string, number, Headers]>([
    ["nothing", 429, {}],
    ["an unreadable time", 429, { "retry-after": "soon" }],
    ["a time in the past", 429, { "retry-after": "Wed, 21 Oct 2015 07:28:00 GMT" }],
    ["nothing", 529, {}],
  ])("gets a retry time if the upstream sent %s (%i)", async (_what, status, headers) => {
    stage.place("box", refusing(status, headers));
    const answered = await stage.chat();
    expect(answered.status).toBe(status === 429 ? 429 : 503);
    expect(answered.headers.get("retry-after")).toBe("5");
  });

  test("gets the right status even if the upstream's error is not JSON", async () => {
    const page = { "content-type": "text/html" };
    stage.place("box", (far) => far.respond(429, { ...page, "retry-after": "7" }));
    const limited = await stage.chat();
    expect([limited.status, limited.headers.get("retry-after")]).toEqual([429, "7"]);
  });

  test.each([
    [529, { message: "No." }, 503, "overloaded"],
    [503, { message: "No.", type: "overloaded_error" }, 503, "overloaded"],
    [503, { message: "No.", code: "server_is_overloaded" }, 503, "overloaded"],
    [503, { message: "The model is overloaded. Please try again later." }, 503, "overloaded"],
    [503, { message: "Loading model" }, 502, "upstream_failed"],
    [500, { message: "No." }, 502, "upstream_failed"],
  ])("of an upstream that sends %i %j gets %i %s", async (...row) => {
    const [status, error, told, code] = row;
    stage.place("box", refusing(status, {}, error));
    const answered = await stage.chat();
    expect(answered.status).toBe(told);
    expect(await answered.json()).toMatchObject({
      error: { code, source: "provider", message: `node:box: ${error.message}` },
    });
    expect(answered.headers.get("retry-after")).toBe(told === 503 ? "5" : null);
    await expect.poll(() => stage.ends).toMatchObject([{ outcome: "upstream_failed", usage: null }]);
  });

  test("is served after a 529 without an error, by another upstream or the same one", async () => {
    let busy = true;
    const upstream = stage.place("a", (far) => {
      (busy ? refusing(529) : answer)(far);
      busy = false;
    });
    expect((await stage.chat()).status).toBe(200);
    expect(upstream.calls).toHaveLength(2);
  });
});
