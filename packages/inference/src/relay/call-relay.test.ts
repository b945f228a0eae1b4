import { once } from "node:events";
import { text } from "node:stream/consumers";
import { DomainError } from "@fairlead/protocol/errors";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import {
  chunk,
  DONE,
  JSON_TYPE,
  KEEP_ALIVE_MS,
  LIMITS,
  RelayStage,
  type Scene,
  type Setting,
  SSE,
} from "./call-relay.fixture.ts";

let stage: RelayStage;

beforeEach(async () => {
  stage = new RelayStage();
  await stage.listen();
});
afterEach(() => stage.close());

const begin = (setting?: Setting): Promise<Scene> => stage.begin(setting);

describe("a response's head", () => {
  test("has only headers that are meant for callers, and those of the host", async () => {
    const { call, answer, committed } = await begin({ stream: false });
    call.respond(200, {
      ...JSON_TYPE,
      "content-length": "2",
      "x-ratelimit-remaining-tokens": "7",
      server: "engine",
      "set-cookie": "a=b",
      "x-request-id": "theirs",
      "www-authenticate": "Bearer",
    });
    call.write("{}");
    call.end();
    const { headers } = await answer;
    expect(headers).toMatchObject({
      "content-length": "2",
      "x-ratelimit-remaining-tokens": "7",
      "x-request-id": "req_1",
      "x-fairlead-upstream": "node:0",
    });
    for (const name of ["server", "set-cookie", "www-authenticate"]) expect(headers).not.toHaveProperty(name);
    expect(committed()).toBe(1);
  });

  test("reports the host's own time, without the upstream's", async () => {
    const { call, answer, pass } = await begin();
    pass(40);
    call.respond(200, SSE);
    pass(7);
    call.write(chunk("a"));
    expect((await answer).headers["x-fairlead-overhead-ms"]).toBe("0.00");
  });

  test("of a stream is sent with its first event, without a length, marked as not to be buffered", async () => {
    const { call, answer, response } = await begin();
    call.respond(200, { ...SSE, "content-length": "99" });
    expect(response.headersSent).toBe(false);
    call.write(chunk("a"));
    const { headers } = await answer;
    expect(headers).toMatchObject({ ...SSE, "cache-control": "no-cache", "x-accel-buffering": "no" });
    expect(headers).not.toHaveProperty("content-length");
  });

  test.each([
    [400, 400, "invalid_request", "rejected"],
    [404, 404, "model_not_found", "rejected"],
    [413, 413, "request_too_large", "rejected"],
    [422, 422, "invalid_request", "rejected"],
    [429, 429, "rate_limit_exceeded", "upstream_failed"],
    [409, 502, "upstream_failed", "upstream_failed"],
    [500, 502, "upstream_failed", "upstream_failed"],
    [503, 502, "upstream_failed", "upstream_failed"],
  ])("for a JSON error of the upstream (%i) is %i with the host's code %s", async (...row) => {
    const [status, answered, code, outcome] = row;
    for (const stream of [true, false]) {
      const { relay, call, answer } = await begin({ stream });
      call.respond(status, { ...JSON_TYPE, "retry-after": "3" });
      call.write(
        '{"error":{"message":"no such model","type":"x","code":null},"usage":{"prompt_tokens":9,"completion_tokens":9}}',
      );
      call.end();
      const told = await answer;
      expect(told.statusCode).toBe(answered);
      expect(told.headers["retry-after"]).toBe("3");
      expect(told.headers["x-should-retry"]).toBe(outcome === "rejected" ? "false" : undefined);
      const { error } = JSON.parse(await text(told)) as { error: object };
      const message = outcome === "rejected" ? "no such model" : "node:0: no such model";
      expect(Object.keys(error)).toEqual(expect.arrayContaining(["message", "type", "code", "param"]));
      expect(error).toMatchObject({ code, message, source: "provider", requestId: "req_1" });
      await relay.closed;
      expect(relay.outcome).toBe(outcome);
      expect(relay.answer?.usage).toBeNull();
    }
  });

  test.each([
    [401, JSON_TYPE, "upstream_rejected_credentials", "false"],
    [402, JSON_TYPE, "upstream_rejected_credentials", "false"],
    [403, JSON_TYPE, "upstream_rejected_credentials", "false"],
    [302, { location: "http://10.0.0.1/" }, "upstream_failed", undefined],
    [500, { "content-type": "text/html" }, "upstream_failed", undefined],
    [503, SSE, "upstream_failed", undefined],
    [400, { ...JSON_TYPE, "content-encoding": "compress" }, "upstream_failed", undefined],
    [400, { ...JSON_TYPE, "content-encoding": "gzip, gzip" }, "upstream_failed", undefined],
  ])("for a status that does not concern the caller (%i) is 502, and the upstream is aborted", async (...row) => {
    const [status, headers, code, shouldRetry] = row;
    const { call, answer } = await begin();
    call.respond(status, headers);
    const message = await answer;
    expect(message.statusCode).toBe(502);
    expect(message.headers["x-should-retry"]).toBe(shouldRetry);
    expect(message.headers["location"]).toBeUndefined();
    expect(JSON.parse(await text(message))).toMatchObject({ error: { code, source: "provider", requestId: "req_1" } });
    expect(call.closed).toBe(true);
  });
});

describe("the outcome of a finished call", () => {
  test.each([
    ["{}", "ok"],
    [`{"choices":[],"pad":"${"x".repeat(100)}","error":{"message":"no"}}`, "upstream_failed"],
  ])("with a 200 response of %s is %s", async (body, outcome) => {
    const { relay, call, answer } = await begin({ stream: false });
    call.respond(200, JSON_TYPE);
    for (const piece of body.match(/.{1,50}/g) ?? []) call.write(piece);
    call.end();
    expect(await text(await answer)).toBe(body);
    await relay.closed;
    expect(relay.outcome).toBe(outcome);
    expect(relay.status).toBe(200);
  });

  test("is upstream_failed if the upstream breaks off", async () => {
    const { relay, call, answer } = await begin();
    call.respond(200, SSE);
    call.write(chunk("a"));
    call.cut();
    await text(await answer);
    await relay.closed;
    expect(relay.outcome).toBe("upstream_failed");
  });

  test("is client_left if the caller disconnects, and bytes relayed until then are counted", async () => {
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
  const large = `data: ${"a".repeat(1024 * 1024)}\n\n`;

  test("pauses the upstream while the caller does not read, and then resumes it", async () => {
    const { call, answer } = await begin();
    call.respond(200, SSE);
    call.write(chunk("a"));
    const message = await answer;
    message.pause();
    let sent = 0;
    while (call.resumed === 0 && sent < 64) {
      call.write(large);
      sent++;
    }
    call.write(DONE);
    call.end();
    const received = await text(message);
    expect(received.length).toBe(chunk("a").length + sent * large.length + DONE.length);
    expect(call.resumed).toBeGreaterThan(0);
  });

  test("ends the call if the caller never reads again, and aborts the upstream", async () => {
    const { call, answer, pass, response } = await begin();
    call.respond(200, SSE);
    call.write(chunk("a"));
    (await answer).pause();
    while (!response.writableNeedDrain) call.write(large);
    pass(1);
    pass(LIMITS.idleMs);
    await vi.waitFor(() => expect(call.closed).toBe(true));
  });
});

describe("a caller that disconnects", () => {
  test("before the headers aborts the upstream and closes the call", async () => {
    const { relay, call, leave, committed } = await begin();
    leave();
    await relay.closed;
    expect(call.closed).toBe(true);
    expect(committed()).toBe(1);
  });

  test("between the headers and the first event aborts and closes them too", async () => {
    const { relay, call, leave } = await begin();
    call.respond(200, SSE);
    leave();
    await relay.closed;
    expect(call.closed).toBe(true);
    expect(relay.outcome).toBe("client_left");
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

describe("another attempt", () => {
  test.each<[string, (scene: Scene) => void]>([
    ["could not be reached", ({ call }) => call.cut()],
    ["has no engine running", ({ call }) => call.fail(new DomainError("no_running_engine", "Not running."))],
    ["responds 429", ({ call }) => call.respond(429, JSON_TYPE)],
    ["responds 500", ({ call }) => call.respond(500, { "content-type": "text/html" })],
    ["rejects the platform's credential", ({ call }) => call.respond(401, JSON_TYPE)],
    [
      "ends a stream before its first event",
      ({ call }) => {
        call.respond(200, SSE);
        call.end();
      },
    ],
    [
      "begins a stream with an error",
      ({ call }) => {
        call.respond(200, SSE);
        call.write('data: {"error":{"message":"busy","code":503}}\n\n');
      },
    ],
    [
      "breaks off between the head and the body",
      ({ call }) => {
        call.respond(200, JSON_TYPE);
        call.cut();
      },
    ],
  ])("follows if the upstream %s", async (_name, goWrong) => {
    const scene = await begin({ upstreams: 2 });
    goWrong(scene);
    const second = scene.calls[1];
    expect((await second?.request)?.body.toString()).toContain('"model":"m1"');
    expect(scene.committed()).toBe(0);
    second?.respond(200, SSE);
    second?.write(chunk("a") + DONE);
    second?.end();
    const message = await scene.answer;
    expect(message.statusCode).toBe(200);
    expect(message.headers["x-fairlead-upstream"]).toBe("node:1");
    expect(await text(message)).toBe(chunk("a") + DONE);
  });

  test.each<[string, (scene: Scene) => Promise<void> | void]>([
    ["the upstream rejected the call itself", ({ call }) => call.respond(400, JSON_TYPE)],
    [
      "data was sent",
      ({ call }) => {
        call.respond(200, SSE);
        call.write(chunk("a"));
        call.cut();
      },
    ],
    [
      "a comment was sent",
      ({ call, pass }) => {
        pass(1);
        pass(KEEP_ALIVE_MS);
        call.cut();
      },
    ],
    [
      "the upstream stayed silent for too long",
      ({ pass }) => {
        pass(1);
        pass(LIMITS.firstByteMs);
      },
    ],
    [
      "the caller disconnected",
      ({ relay, leave }) => {
        leave();
        return relay.closed;
      },
    ],
  ])("does not follow if %s", async (_name, happen) => {
    const scene = await begin({ upstreams: 2 });
    await happen(scene);
    expect(scene.calls).toHaveLength(1);
  });

  test("that also fails gives the caller the last response", async () => {
    const { call, calls, answer } = await begin({ upstreams: 2 });
    call.respond(503, JSON_TYPE);
    calls[1]?.respond(429, { ...JSON_TYPE, "retry-after": "9" });
    calls[1]?.end();
    const message = await answer;
    expect(message.statusCode).toBe(429);
    expect(message.headers["retry-after"]).toBe("9");
  });
});

describe("timeouts", () => {
  test("return 504 if the upstream does not respond", async () => {
    const { call, answer, pass } = await begin({ stream: false });
    pass(1);
    pass(LIMITS.firstByteMs - 1);
    expect(call.closed).toBe(false);
    pass(1);
    expect((await answer).statusCode).toBe(504);
    expect(call.closed).toBe(true);
  });

  test("are reported in the stream if the upstream falls silent in it", async () => {
    const { call, answer, pass } = await begin();
    call.respond(200, SSE);
    call.write("data: 1\n\n");
    pass(1);
    pass(LIMITS.idleMs);
    expect(await text(await answer)).toContain('data: 1\n\ndata: {"error":{');
    expect(call.closed).toBe(true);
  });

  test("end a stream at the total limit, even if it is never silent", async () => {
    const { call, answer, pass } = await begin();
    call.respond(200, SSE);
    for (let passed = 0; passed < LIMITS.totalMs; passed += 100) {
      call.write("data: 1\n\n");
      pass(100);
    }
    expect(await text(await answer)).toContain('"code":"upstream_timeout"');
  });

  test("are extended by traffic", async () => {
    const { call, pass } = await begin();
    call.respond(200, JSON_TYPE);
    for (let i = 0; i < 10; i++) {
      call.write(" ");
      pass(LIMITS.idleMs - 1);
    }
    expect(call.closed).toBe(false);
  });
});
