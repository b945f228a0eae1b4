import { text } from "node:stream/consumers";
import { DomainError } from "@fairlead/protocol/errors";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
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

/** The rules for streams (decisions/0017), towards a real HTTP caller. */

let stage: RelayStage;

beforeEach(async () => {
  stage = new RelayStage();
  await stage.listen();
});
afterEach(() => stage.close());

async function streaming(said: string, setting?: Setting): Promise<Scene> {
  const scene = await stage.begin(setting);
  scene.call.respond(200, SSE);
  if (said !== "") scene.call.write(said);
  return scene;
}

const received = async (scene: Scene): Promise<string> => text(await scene.answer);

/** The error of a chat stream's last event. */
function lastError(stream: string): unknown {
  const last = stream.trimEnd().split("\n\n").at(-1) ?? "";
  expect(last.startsWith("data: ")).toBe(true);
  return (JSON.parse(last.slice("data: ".length)) as { error?: unknown }).error;
}

interface ResponseEvent {
  readonly type: string;
  readonly sequence_number: number;
  readonly [field: string]: unknown;
}

function responseEvents(stream: string): ResponseEvent[] {
  return stream
    .split("\n\n")
    .filter((frame) => frame.includes("data: {"))
    .map((frame) => {
      const event = JSON.parse(frame.slice(frame.indexOf("data: ") + "data: ".length)) as ResponseEvent;
      expect(frame.startsWith(`event: ${event.type}\n`)).toBe(true);
      return event;
    });
}

const event = (type: string, sequence: number, rest: object = {}): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: sequence, ...rest })}\n\n`;
const created = event("response.created", 0, {
  response: { id: "resp_up", object: "response", created_at: 7, model: "big", status: "in_progress", error: null },
});
const delta = (sequence: number): string =>
  event("response.output_text.delta", sequence, { item_id: "msg_1", output_index: 0, content_index: 0, delta: "Hi" });

describe("a chat stream that fails", () => {
  test.each([
    ["between events", chunk("a"), chunk("a")],
    ["in the middle of a line", `${chunk("a")}data: {"choi`, chunk("a")],
    ["in the middle of an event", `${chunk("a")}data: 1\r\n`, chunk("a")],
  ])("ends with an error event and without [DONE] if it breaks off %s", async (_name, said, kept) => {
    const scene = await streaming(said);
    scene.call.cut();
    const stream = await received(scene);
    expect(stream.startsWith(`${kept}data: {"error":`)).toBe(true);
    expect(lastError(stream)).toMatchObject({ code: "upstream_failed", source: "provider", requestId: "req_1" });
    expect(stream).not.toContain("[DONE]");
  });

  test("before its first event is reported with a status", async () => {
    const scene = await streaming("data: {");
    scene.call.cut();
    const message = await scene.answer;
    expect(message.statusCode).toBe(502);
    expect(message.headers["content-type"]).toContain("application/json");
  });

  test("includes one that the upstream ends cleanly but without [DONE]", async () => {
    const scene = await streaming(chunk("a"));
    scene.call.end();
    expect(lastError(await received(scene))).toMatchObject({ code: "upstream_failed" });
    await scene.relay.closed;
    expect(scene.relay.outcome).toBe("upstream_failed");
  });

  test("inside a very long event reports the error on a new line", async () => {
    const long = `data: {"choices":[{"delta":{"content":"${"x".repeat(100_000)}`;
    const scene = await streaming(long);
    scene.call.cut();
    const stream = await received(scene);
    expect(stream.startsWith(`${long}\n\ndata: {"error":`)).toBe(true);
  });

  test("with its upstream's own error passes it on, and nothing that looks like a normal end", async () => {
    const told = 'data: {"error":{"message":"out of memory","code":500}}\n\n';
    const scene = await streaming(chunk("a") + told + DONE);
    scene.call.end();
    expect(await received(scene)).toBe(chunk("a") + told);
    await scene.relay.closed;
    expect(scene.relay.outcome).toBe("upstream_failed");
  });

  test("with an error before anything else has a status and the upstream's message", async () => {
    const scene = await streaming('event: error\ndata: {"message":"prompt too long"}\n\n');
    const message = await scene.answer;
    expect(message.statusCode).toBe(502);
    expect(JSON.parse(await text(message))).toMatchObject({
      error: { code: "upstream_failed", message: expect.stringContaining("prompt too long") as string },
    });
    expect(scene.call.closed).toBe(true);
  });

  test("because the upstream rejects the platform's credential does not reveal the upstream's message", async () => {
    const quarrel = 'data: {"error":{"message":"Incorrect API key provided: sk-secret","code":"invalid_api_key"}}\n\n';
    const scene = await streaming(chunk("a") + quarrel);
    const stream = await received(scene);
    expect(stream).not.toContain("sk-secret");
    expect(lastError(stream)).toMatchObject({ code: "upstream_rejected_credentials" });
  });

  test("with an error that is not an event has the upstream's message", async () => {
    const scene = await streaming(`${chunk("a")}{"error":{"message":"GPU fell off","code":"gpu"}}`);
    scene.call.end();
    expect(lastError(await received(scene))).toMatchObject({
      message: expect.stringContaining("GPU fell off") as string,
    });
  });

  test("after its end is successful", async () => {
    const scene = await streaming(chunk("a") + DONE);
    scene.call.cut();
    expect(await received(scene)).toBe(chunk("a") + DONE);
    await scene.relay.closed;
    expect(scene.relay.outcome).toBe("ok");
  });

  test("because of the host reports the error in the stream too", async () => {
    const scene = await streaming(chunk("a"));
    scene.relay.fail(new DomainError("unavailable", "Fairlead is shutting down."));
    expect(lastError(await received(scene))).toMatchObject({ code: "unavailable", source: "fairlead" });
    expect(scene.call.closed).toBe(true);
  });

  test.each([
    ["JSON", JSON_TYPE, false],
    ["a compressed stream, to which nothing can be added", { ...SSE, "content-encoding": "gzip" }, true],
  ])("in %s breaks the caller's connection", async (_name, headers, stream) => {
    const scene = await stage.begin({ stream });
    scene.call.respond(200, headers);
    scene.call.write("{");
    scene.call.write('"a":');
    const message = await scene.answer;
    scene.call.cut();
    await expect(text(message)).rejects.toThrow("aborted");
  });
});

describe("a stream of responses that fails", () => {
  const responses = { dialect: "responses" } as const;

  test.each(["cut", "end"] as const)(
    "ends with an error and a failed response, with consecutive numbers (%s)",
    async (how) => {
      const scene = await streaming(created + delta(1) + delta(2), responses);
      scene.call[how]();
      const events = responseEvents(await received(scene));
      expect(events.map(({ type, sequence_number }) => [type, sequence_number])).toEqual([
        ["response.created", 0],
        ["response.output_text.delta", 1],
        ["response.output_text.delta", 2],
        ["error", 3],
        ["response.failed", 4],
      ]);
      expect(events[3]).toMatchObject({ code: "upstream_failed", param: null, error: { requestId: "req_1" } });
      expect(events[4]).toMatchObject({
        response: { id: "resp_up", model: "big", created_at: 7, status: "failed", error: { code: "server_error" } },
      });
    },
  );

  test("with only the upstream's error gets the failed response that clients wait for", async () => {
    const error = event("error", 1, { code: "server_error", message: "no", param: null });
    const scene = await streaming(created + error, responses);
    scene.call.end();
    const events = responseEvents(await received(scene));
    expect(events.map(({ type, sequence_number }) => [type, sequence_number])).toEqual([
      ["response.created", 0],
      ["error", 1],
      ["response.failed", 2],
    ]);
  });

  test("with the upstream's own failed response is not changed", async () => {
    const failed = event("response.failed", 1, { response: { id: "resp_up", error: { code: "server_error" } } });
    const scene = await streaming(created + failed, responses);
    scene.call.end();
    expect(await received(scene)).toBe(created + failed);
    await scene.relay.closed;
    expect(scene.relay.outcome).toBe("upstream_failed");
  });

  test("after only comments begins with a response, because clients throw on any other first event", async () => {
    const scene = await stage.begin(responses);
    scene.pass(1);
    scene.pass(KEEP_ALIVE_MS);
    scene.call.cut();
    const events = responseEvents((await received(scene)).replace(": keep-alive\n\n", ""));
    expect(events.map(({ type, sequence_number }) => [type, sequence_number])).toEqual([
      ["response.created", 0],
      ["error", 1],
      ["response.failed", 2],
    ]);
    expect(events[0]).toMatchObject({
      response: { id: "resp_1", model: "n/m", created_at: 1000, status: "in_progress" },
    });
  });
});

describe("keep-alive comments", () => {
  test("are repeated while a stream is silent", async () => {
    const scene = await streaming(chunk("a"));
    scene.pass(1);
    scene.pass(KEEP_ALIVE_MS);
    scene.pass(1);
    scene.pass(KEEP_ALIVE_MS);
    scene.call.write(chunk("b") + DONE);
    scene.call.end();
    expect(await received(scene)).toBe(`${chunk("a")}: keep-alive\n\n: keep-alive\n\n${chunk("b")}${DONE}`);
  });

  test("can begin before the upstream's response, and the stream follows", async () => {
    const scene = await stage.begin();
    scene.pass(1);
    scene.pass(KEEP_ALIVE_MS);
    const message = await scene.answer;
    expect(message.statusCode).toBe(200);
    expect(message.headers).toMatchObject({ ...SSE, "x-fairlead-upstream": "node:0", "x-request-id": "req_1" });
    scene.call.respond(200, SSE);
    scene.call.write(chunk("a") + DONE);
    scene.call.end();
    expect(await text(message)).toBe(`: keep-alive\n\n${chunk("a")}${DONE}`);
  });

  test.each([
    ["an error with the upstream's message", 429, '{"error":{"message":"too fast","code":"rate"}}', "too fast"],
    ["a bare status", 500, "<html>", "status 500"],
    ["a rejected credential", 401, '{"error":{"message":"bad key"}}', "rejected the credential"],
    ["a response that is neither a stream nor a completion", 200, '{"choice":[]}', "not a chat completion"],
  ])("make a later upstream error an event: %s", async (...row) => {
    const [, status, body, words] = row;
    const scene = await stage.begin();
    scene.pass(1);
    scene.pass(KEEP_ALIVE_MS);
    scene.call.respond(status, JSON_TYPE);
    scene.call.write(body);
    scene.call.end();
    const stream = await received(scene);
    expect(lastError(stream)).toMatchObject({ message: expect.stringContaining(words) as string });
    expect(stream).not.toContain("bad key");
  });

  test("make a later timeout an event", async () => {
    const scene = await stage.begin();
    scene.pass(1);
    scene.pass(KEEP_ALIVE_MS);
    scene.pass(LIMITS.firstByteMs);
    expect(lastError(await received(scene))).toMatchObject({ code: "upstream_timeout" });
  });

  test("are never sent inside an event", async () => {
    const long = `data: ${"x".repeat(100_000)}`;
    const scene = await streaming(long);
    scene.pass(1);
    scene.pass(KEEP_ALIVE_MS);
    scene.call.write(`\n\n${DONE}`);
    scene.call.end();
    expect(await received(scene)).toBe(`${long}\n\n${DONE}`);
  });

  test("are never sent in a response that is not a stream", async () => {
    const scene = await stage.begin({ stream: false });
    scene.pass(1);
    scene.pass(KEEP_ALIVE_MS);
    scene.call.respond(200, JSON_TYPE);
    scene.call.write("{");
    scene.pass(1);
    scene.pass(KEEP_ALIVE_MS);
    scene.call.write("}");
    scene.call.end();
    expect(await received(scene)).toBe("{}");
  });
});
