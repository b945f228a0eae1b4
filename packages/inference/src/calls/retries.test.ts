import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ANSWER, CHAT, HostStage } from "../host/host-stage.fixture.ts";
import { chunk, JSON_TYPE, SSE } from "../relay/call-relay.fixture.ts";
import { FAILURES_TO_OPEN } from "../routing/breaker.ts";
import { NotReached } from "../routing/upstream-faults.ts";
import type { ScriptedCall } from "../testing/scripted-upstream.ts";
import type { FarEnd } from "../upstreams/upstream.contract.ts";

let stage: HostStage;
beforeEach(() => {
  stage = new HostStage();
});

afterEach(() => stage.close());
function answer(far: FarEnd): void {
  far.respond(200, JSON_TYPE);
  far.write(JSON.stringify(ANSWER));
  far.end();
}

function refuse(far: FarEnd, status: number, headers: Record<string, string> = {}): void {
  far.respond(status, { ...JSON_TYPE, ...headers });
  far.write('{"error":{"message":"no"}}');
  far.end();
}

const notReached = (far: ScriptedCall): void => far.fail(new NotReached("upstream_failed", "No connection."));
describe("a failure before the first byte", () => {
  test.each<[string, (far: ScriptedCall) => void]>([
    ["no connection", notReached],
    ["status 429", (far: ScriptedCall) => refuse(far, 429)],
    ["status 500", (far: ScriptedCall) => refuse(far, 500)],
    ["status 503 without JSON", (far: ScriptedCall) => far.respond(503, { "content-type": "text/html" })],
    ["a rejected credential", (far: ScriptedCall) => refuse(far, 401)],
    ["a connection that breaks off", (far: ScriptedCall) => far.cut()],
    [
      "an error as the first event",
      (far: ScriptedCall) => {
        far.respond(200, SSE);
        far.write('data: {"error":{"message":"loading"}}\n\n');
        far.end();
      },
    ],
    [
      // OpenCSGs/csghub-server#1369: taken for a good answer, since its status was 200.
      "an empty account reported in a stream with status 200",
      (far: ScriptedCall) => {
        far.respond(200, SSE);
        far.write('data: {"error":{"message":"No balance.","code":"insufficient_balance"}}\n\ndata: [DONE]\n\n');
        far.end();
      },
    ],
  ])("is retried on the next upstream without the caller noticing: %s", async (_name, play) => {
    await stage.open();
    stage.place("bad", play);
    stage.place("good", answer);
    const answered = await stage.chat();
    expect(answered.status).toBe(200);
    expect(answered.headers.get("x-fairlead-upstream")).toBe("node:good");
    expect(answered.headers.get("x-fairlead-attempts")).toBe("2");
    expect(await answered.json()).toEqual(ANSWER);
    await vi.waitFor(() => expect(stage.ends).toMatchObject([{ outcome: "ok", attempts: 2 }]));
  });

  test("is returned to the caller if the request is invalid or no other upstream is left", async () => {
    await stage.open();
    stage.place("a", (far: ScriptedCall) => refuse(far, 400));
    stage.place("b", answer);
    expect((await stage.chat()).status).toBe(400);
    stage.candidates = [];
    stage.place("c", (far: ScriptedCall) => refuse(far, 500));
    const failed = await stage.chat();
    expect(failed.status).toBe(502);
    expect(failed.headers.get("x-fairlead-attempts")).toBe("1");
  });
});

describe("the same upstream", () => {
  test("is retried after a wait if it had not started the call, and the response counts the attempts", async () => {
    await stage.open();
    const upstream = stage.place("only");
    const answered = stage.chat();
    for (const [at, play] of [notReached, (far: ScriptedCall) => refuse(far, 429), answer].entries()) {
      await vi.waitFor(() => expect(upstream.calls).toHaveLength(at + 1));
      const far = upstream.calls[at];
      if (far !== undefined) play(far);
    }
    expect((await answered).headers.get("x-fairlead-attempts")).toBe("3");
    expect(stage.host?.counters.retries).toEqual(
      new Map([
        ["not_reached", 1],
        ["busy", 1],
      ]),
    );
  });

  test("is not retried before the time it asks for, and not at all beyond the maximum wait", async () => {
    await stage.open({ limits: { maxRetryWaitMs: 50 } });
    const upstream = stage.place("only");
    const [first, second] = [upstream.nextCall(), upstream.nextCall()];
    const patient = stage.chat();
    refuse(await first, 429, { "retry-after-ms": "40" });
    answer(await second);
    expect((await patient).status).toBe(200);
    const third = upstream.nextCall();
    const told = stage.chat();
    refuse(await third, 429, { "retry-after": "7" });
    expect((await told).status).toBe(429);
    expect((await told).headers.get("retry-after")).toBe("7");
    expect(upstream.calls).toHaveLength(3);
  });

  test.each([
    ["responded with an error", (far: ScriptedCall) => refuse(far, 500)],
    ["broke off", (far: ScriptedCall) => far.cut()],
  ])("is not retried if it %s, because it would probably do so again", async (_name, play) => {
    await stage.open();
    const upstream = stage.place("only", play);
    expect((await stage.chat()).status).toBeGreaterThanOrEqual(500);
    expect(upstream.calls).toHaveLength(1);
  });

  test("is called no more often than configured", async () => {
    await stage.open({ limits: { maxAttempts: 3 } });
    const upstream = stage.place("only", (far: ScriptedCall) => refuse(far, 503));
    const refused = await stage.chat();
    expect(refused.status).toBe(502);
    expect(refused.headers.get("x-fairlead-attempts")).toBe("3");
    expect(upstream.calls).toHaveLength(3);
  });
});

test("a broken call to a provider that may have acted on its own is not retried", async () => {
  await stage.open();
  const acts = { kind: "provider", protocols: ["responses"] } as const;
  const first = stage.place("first", (far: ScriptedCall) => far.cut(), acts);
  const second = stage.place("second", (far: ScriptedCall) => far.cut(), acts);
  expect((await stage.chat()).status).toBe(502);
  expect(first.calls.length + second.calls.length).toBe(1);
});

test("after the first byte a call is not retried, and the stream ends with the error", async () => {
  await stage.open();
  const first = stage.place("first");
  const second = stage.place("second");
  const arrived = first.nextCall();
  const answered = stage.chat({ ...CHAT, stream: true });
  const far = await arrived;
  far.respond(200, SSE);
  far.write(chunk("Hi"));
  const response = await answered;
  far.cut();
  expect(await response.text()).toContain('"code":"upstream_failed"');
  expect(second.calls).toHaveLength(0);
});

test("a caller that disconnects during a wait ends the call without another attempt", async () => {
  await stage.open({ random: () => 0.99 });
  const upstream = stage.place("only");
  const leaving = new AbortController();
  const arrived = upstream.nextCall();
  const answered = stage.chat(CHAT, { signal: leaving.signal });
  refuse(await arrived, 429, { "retry-after-ms": "60" });
  leaving.abort();
  await expect(answered).rejects.toThrow();
  await vi.waitFor(() => expect(stage.ends).toMatchObject([{ outcome: "client_left" }]));
  await vi.waitFor(() => expect(stage.host?.load).toEqual({ callsInFlight: 0, bufferedBytes: 0 }));
  await new Promise((resolve) => setTimeout(resolve, 80));
  expect(upstream.calls).toHaveLength(1);
});

test("stopping the server ends calls that wait for a retry, without another attempt", async () => {
  await stage.open();
  const upstream = stage.place("only");
  const arrived = upstream.nextCall();
  const answered = stage.chat();
  refuse(await arrived, 429, { "retry-after": "2" });
  await stage.close();
  expect((await answered).status).toBe(503);
  expect(upstream.calls).toHaveLength(1);
  expect(stage.host?.load.callsInFlight).toBe(0);
});

test("an upstream that failed several times is paused, callers get a retry time, and it then recovers", async () => {
  await stage.open({ limits: { maxAttempts: 1 } });
  let works = false;
  const upstream = stage.place("only", (far: ScriptedCall) => (works ? answer(far) : far.cut()));
  for (let n = 0; n < FAILURES_TO_OPEN; n++) expect((await stage.chat()).status).toBe(502);
  const held = await stage.chat();
  expect(held.status).toBe(503);
  expect(held.headers.get("retry-after")).toBe("5");
  expect(await held.json()).toMatchObject({ error: { code: "unavailable" } });
  expect(upstream.calls).toHaveLength(FAILURES_TO_OPEN);
  works = true;
  stage.clock.advance(5000);
  expect((await stage.chat()).status).toBe(200);
  expect((await stage.chat()).status).toBe(200);
});

test("concurrent calls are spread over upstreams of the same rank", async () => {
  await stage.open();
  const [a, b] = [stage.place("a"), stage.place("b")];
  const answers = [1, 2, 3, 4].map(() => stage.chat());
  await vi.waitFor(() => expect(a.calls.length + b.calls.length).toBe(4));
  expect([a.calls.length, b.calls.length]).toEqual([2, 2]);
  for (const far of [...a.calls, ...b.calls]) answer(far);
  for (const answered of answers) expect((await answered).status).toBe(200);
});
