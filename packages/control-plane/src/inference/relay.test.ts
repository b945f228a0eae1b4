import { once } from "node:events";
import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { DomainError } from "@fairlead/protocol/errors";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type ScriptedCall, ScriptedUpstream } from "../testing/scripted-upstream.ts";
import { Relay } from "./relay.ts";

const LIMITS = { firstByteMs: 100, idleMs: 200, totalMs: 10_000, keepAliveMs: 50 };
const SSE = { "content-type": "text/event-stream; charset=utf-8" };
const JSON_TYPE = { "content-type": "application/json" };

let server: Server;
let now: number;
let upstream: ScriptedUpstream;

beforeEach(async () => {
  now = 0;
  upstream = new ScriptedUpstream();
  server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});

afterEach(() => {
  server.closeAllConnections();
  server.close();
});

interface Scene {
  readonly relay: Relay;
  readonly call: ScriptedCall;
  readonly response: ServerResponse;
  /** The caller's view; hangs until headers come. */
  readonly answer: Promise<IncomingMessage>;
  readonly answered: () => number;
  /** Moves the clock and looks at the time-outs. */
  readonly pass: (ms: number) => void;
  readonly leave: () => void;
  readonly counters: { readonly relayedBytes: number };
}

async function begin(): Promise<Scene> {
  const request = httpRequest({ port: (server.address() as AddressInfo).port, host: "127.0.0.1", agent: false });
  request.on("error", () => undefined);
  const answer = once(request, "response").then(([message]) => message as IncomingMessage);
  answer.catch(() => undefined);
  request.end();
  const [, response] = (await once(server, "request")) as [IncomingMessage, ServerResponse];
  let answered = 0;
  const onAnswered = (): void => void answered++;
  const counters = { relayedBytes: 0 };
  const relay = new Relay({ response, requestId: "req_1" }, { limits: LIMITS, now, onAnswered, counters });
  relay.start(upstream, { method: "POST", path: "/", headers: {}, body: [] });
  const [call] = upstream.calls;
  if (call === undefined) throw new Error("not dispatched");
  const pass = (ms: number): void => {
    now += ms;
    relay.check(now);
  };
  return { relay, call, response, answer, answered: () => answered, pass, leave: () => request.destroy(), counters };
}

describe("an answer's head", () => {
  test("holds only what is meant for callers, and our request id", async () => {
    const { call, answer, answered } = await begin();
    call.respond(200, {
      ...JSON_TYPE,
      "content-length": "2",
      "x-ratelimit-remaining-tokens": "7",
      server: "engine",
      "set-cookie": "a=b",
      "x-request-id": "theirs",
    });
    call.write("{}");
    call.end();
    const { headers } = await answer;
    expect(headers).toMatchObject({
      "content-length": "2",
      "x-ratelimit-remaining-tokens": "7",
      "x-request-id": "req_1",
    });
    expect(headers).not.toHaveProperty("server");
    expect(headers).not.toHaveProperty("set-cookie");
    expect(answered()).toBe(1);
  });

  test("of a stream is sent before its first piece, without a length, marked as not to be buffered", async () => {
    const { call, answer } = await begin();
    call.respond(200, { ...SSE, "content-length": "99" });
    const { headers } = await answer;
    expect(headers).toMatchObject({ ...SSE, "cache-control": "no-cache", "x-accel-buffering": "no" });
    expect(headers).not.toHaveProperty("content-length");
  });

  test.each([400, 404, 422, 429, 500, 503])("an upstream's own JSON refusal (%i) is passed on", async (status) => {
    const { call, answer } = await begin();
    call.respond(status, { ...JSON_TYPE, "retry-after": "3" });
    call.write('{"detail":"no"}');
    call.end();
    const message = await answer;
    expect(message.statusCode).toBe(status);
    expect(message.headers["retry-after"]).toBe("3");
    expect(await text(message)).toBe('{"detail":"no"}');
  });

  test.each([
    [401, JSON_TYPE],
    [402, JSON_TYPE],
    [403, JSON_TYPE],
    [302, { location: "http://10.0.0.1/" }],
    [500, { "content-type": "text/html" }],
  ])("a status that is not the caller's matter (%i) is 502, and the upstream is let go", async (status, headers) => {
    const { call, answer } = await begin();
    call.respond(status, headers);
    const message = await answer;
    expect(message.statusCode).toBe(502);
    expect(JSON.parse(await text(message))).toMatchObject({
      error: { code: "upstream_failed", source: "provider", requestId: "req_1" },
    });
    expect(call.closed).toBe(true);
  });
});

describe("a call that is over", () => {
  test.each([
    [200, "ok"],
    [422, "rejected"],
  ])("answered by the engine with %i was %s", async (status, outcome) => {
    const { relay, call, answer } = await begin();
    call.respond(status, JSON_TYPE);
    call.write("{}");
    call.end();
    await text(await answer);
    await relay.closed;
    expect(relay.outcome).toBe(outcome);
  });

  test("broken off by the engine was upstream_failed", async () => {
    const { relay, call, answer } = await begin();
    call.respond(200, SSE);
    call.cut();
    await text(await answer);
    await relay.closed;
    expect(relay.outcome).toBe("upstream_failed");
  });

  test("left by its caller was client_left, and what was relayed until then is counted", async () => {
    const { relay, call, answer, leave, counters } = await begin();
    call.respond(200, SSE);
    call.write("data: 1\n\n");
    await once(await answer, "data");
    leave();
    await relay.closed;
    expect(relay.outcome).toBe("client_left");
    expect(counters.relayedBytes).toBe(9);
  });
});

describe("backpressure", () => {
  test("pauses the upstream while the caller does not read, and resumes it after", async () => {
    const { call, answer } = await begin();
    call.respond(200, SSE);
    const message = await answer;
    message.pause();
    let sent = 0;
    while (call.resumed === 0 && sent < 64) {
      call.write(Buffer.alloc(1024 * 1024, 0x61));
      sent++;
    }
    call.end();
    const received = await text(message);
    expect(received.length).toBe(sent * 1024 * 1024);
    expect(call.resumed).toBeGreaterThan(0);
  });

  test("a caller that never reads again is given up, with the upstream", async () => {
    const { call, answer, pass, response } = await begin();
    call.respond(200, SSE);
    (await answer).pause();
    while (!response.writableNeedDrain) call.write(Buffer.alloc(1024 * 1024, 0x61));
    pass(1);
    pass(LIMITS.idleMs);
    await vi.waitFor(() => expect(call.closed).toBe(true));
  });
});

describe("a caller that leaves", () => {
  test("before the headers aborts the upstream and closes the call", async () => {
    const { relay, call, leave } = await begin();
    leave();
    await relay.closed;
    expect(call.closed).toBe(true);
  });

  test("after the end aborts nothing", async () => {
    const { relay, call, answer } = await begin();
    call.respond(200, JSON_TYPE);
    call.end();
    (await answer).resume();
    await relay.closed;
    expect(call.closed).toBe(false);
  });
});

describe("an upstream that breaks off", () => {
  test("before its headers is an error with its status", async () => {
    const { call, answer } = await begin();
    call.fail(new DomainError("no_running_engine", "Not running.", { retryAfterSeconds: 5 }));
    const message = await answer;
    expect(message.statusCode).toBe(503);
    expect(message.headers).toMatchObject({ "retry-after": "5", "x-request-id": "req_1" });
  });

  test.each([
    ["between events", "data: 1\n\n", "data: 1\n\n"],
    ["before the first event", "", ""],
    ["in the middle of a line", "data: 1", "data: 1\n\n"],
    ["in the middle of an event", "data: 1\r\n", "data: 1\r\n\n\n"],
  ])("%s adds one error event of its own to the stream", async (_name, said, kept) => {
    const { call, answer } = await begin();
    call.respond(200, SSE);
    if (said !== "") call.write(said);
    call.cut();
    const received = await text(await answer);
    expect(received.startsWith(`${kept}data: {"error":`)).toBe(true);
    expect(JSON.parse(received.slice(kept.length + "data: ".length))).toMatchObject({
      error: { code: "upstream_failed", requestId: "req_1" },
    });
  });

  test.each([
    ["JSON", JSON_TYPE],
    ["a compressed stream, in which nothing can be said", { ...SSE, "content-encoding": "gzip" }],
  ])("in %s breaks the connection", async (_name, headers) => {
    const { call, answer } = await begin();
    call.respond(200, headers);
    call.write("{");
    const message = await answer;
    call.cut();
    await expect(text(message)).rejects.toThrow("aborted");
  });
});

describe("time-outs", () => {
  test("an upstream that does not answer is 504", async () => {
    const { call, answer, pass } = await begin();
    pass(LIMITS.firstByteMs - 1);
    expect(call.closed).toBe(false);
    pass(1);
    expect((await answer).statusCode).toBe(504);
    expect(call.closed).toBe(true);
  });

  test("one that falls silent in a stream is told in-band", async () => {
    const { call, answer, pass } = await begin();
    call.respond(200, SSE);
    call.write("data: 1");
    pass(1);
    pass(LIMITS.idleMs);
    expect(await text(await answer)).toContain('data: 1\n\ndata: {"error":{');
    expect(call.closed).toBe(true);
  });

  test("one that goes on and on ends at the total, though never silent", async () => {
    const { call, answer, pass } = await begin();
    call.respond(200, SSE);
    while (now < LIMITS.totalMs) {
      call.write("data: 1\n\n");
      pass(100);
    }
    expect(await text(await answer)).toContain('"code":"upstream_timeout"');
  });

  test("traffic moves them on", async () => {
    const { call, pass } = await begin();
    call.respond(200, JSON_TYPE);
    for (let i = 0; i < 10; i++) {
      call.write(" ");
      pass(LIMITS.idleMs - 1);
    }
    expect(call.closed).toBe(false);
  });
});

describe("keep-alive comments", () => {
  test("break a stream's silence, again and again, until it goes on", async () => {
    const { call, answer, pass } = await begin();
    call.respond(200, SSE);
    call.write("data: 1\n\n");
    pass(1);
    pass(LIMITS.keepAliveMs);
    pass(1);
    pass(LIMITS.keepAliveMs);
    call.write("data: 2\n\n");
    call.end();
    expect(await text(await answer)).toBe("data: 1\n\n: keep-alive\n\n: keep-alive\n\ndata: 2\n\n");
  });

  test("never stand inside an event, nor in anything but an event stream, nor before the headers", async () => {
    const half = await begin();
    half.pass(LIMITS.keepAliveMs);
    half.call.respond(200, SSE);
    half.call.write("data: 1\n");
    half.pass(1);
    half.pass(LIMITS.keepAliveMs);
    half.call.write("\n");
    half.call.end();
    expect(await text(await half.answer)).toBe("data: 1\n\n");
    upstream.calls.length = 0;
    const json = await begin();
    json.call.respond(200, JSON_TYPE);
    json.pass(1);
    json.pass(LIMITS.keepAliveMs);
    json.call.write("{}");
    json.call.end();
    expect(await text(await json.answer)).toBe("{}");
  });
});
