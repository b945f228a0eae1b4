import { text } from "node:stream/consumers";
import { assertChatOrder } from "@fairlead/dialects/testing/chat-order";
import { assertResponsesOrder } from "@fairlead/dialects/testing/responses-order";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type BridgedDialect, bridged, eventsOf, OTHER, UPSTREAM_FRAMES, WHOLE } from "./bridged.fixture.ts";
import { JSON_TYPE, KEEP_ALIVE_MS, LIMITS, RelayStage, type Scene, type Setting, SSE } from "./call-relay.fixture.ts";

/** A call of one dialect at upstreams that speak only the other, towards a real HTTP caller. */

const DIALECTS: readonly BridgedDialect[] = ["chat", "responses"];
const PATHS: Readonly<Record<BridgedDialect, string>> = { chat: "/v1/chat/completions", responses: "/v1/responses" };

let stage: RelayStage;

beforeEach(async () => {
  stage = new RelayStage();
  await stage.listen();
});
afterEach(() => stage.close());

const begin = (dialect: BridgedDialect, setting?: Setting): Promise<Scene> => stage.begin(bridged(dialect, setting));

async function streaming(dialect: BridgedDialect, frames: readonly string[], setting?: Setting): Promise<Scene> {
  const scene = await begin(dialect, setting);
  scene.call.respond(200, SSE);
  for (const frame of frames) scene.call.write(frame);
  return scene;
}

function assertOrder(dialect: BridgedDialect, stream: string): void {
  const events = eventsOf(stream).filter((event) => event !== "[DONE]");
  if (dialect === "chat") assertChatOrder(events);
  else assertResponsesOrder(events);
}

describe.each(DIALECTS)("a converted call of %s", (dialect) => {
  const upstream = OTHER[dialect];
  const frames = UPSTREAM_FRAMES[upstream];

  test("reaches the upstream in the upstream's dialect and with its name of the model", async () => {
    const { call, leave } = await begin(dialect, { body: { seed: 1, temperature: 0.5 } });
    const { path, headers, body } = await call.request;
    expect(path).toBe(PATHS[upstream]);
    expect(headers["content-length"]).toBe(String(body.length));
    const sent = JSON.parse(body.toString()) as Record<string, unknown>;
    expect(sent).toMatchObject({ model: "m0", stream: true, seed: 1, temperature: 0.5 });
    expect(sent).toHaveProperty(upstream === "chat" ? "messages" : "input");
    expect(sent).not.toHaveProperty(upstream === "chat" ? "input" : "messages");
    leave();
  });

  test("with `model: null` still names the upstream's model", async () => {
    const { call, leave } = await begin(dialect, { body: { model: null } });
    expect(JSON.parse((await call.request).body.toString())).toMatchObject({ model: "m0" });
    leave();
  });

  test("gets a complete response in its own dialect, without the headers of the original body", async () => {
    const scene = await begin(dialect, { stream: false });
    const body = JSON.stringify(WHOLE[upstream]);
    scene.call.respond(200, { ...JSON_TYPE, "content-length": "5", "x-ratelimit-remaining-tokens": "7" });
    for (const piece of body.match(/.{1,20}/gsu) ?? []) scene.call.write(piece);
    scene.call.end();
    const message = await scene.answer;
    expect(message.statusCode).toBe(200);
    expect(message.headers).toMatchObject({
      "content-type": "application/json; charset=utf-8",
      "x-ratelimit-remaining-tokens": "7",
      "x-fairlead-upstream": "node:0",
    });
    expect(message.headers).not.toHaveProperty("content-length");
    const answer = JSON.parse(await text(message)) as Record<string, unknown>;
    expect(answer).toMatchObject(
      dialect === "chat"
        ? {
            object: "chat.completion",
            model: "0/m0",
            choices: [{ message: { content: "Hi ✓" }, finish_reason: "stop" }],
          }
        : { object: "response", model: "0/m0", status: "completed", output: [{ content: [{ text: "Hi ✓" }] }] },
    );
    await scene.relay.closed;
    expect(scene.relay).toMatchObject({ outcome: "ok", status: 200 });
    expect(scene.relay.answer?.usage).toMatchObject({ inputTokens: 11, cachedInputTokens: 5, outputTokens: 7 });
  });

  test.each([400, 422])("gets an upstream's rejection (%i) in its own dialect", async (status) => {
    const { relay, call, answer } = await begin(dialect);
    call.respond(status, { ...JSON_TYPE, "retry-after": "3", "content-length": "1" });
    const param = upstream === "chat" ? "max_tokens" : "max_output_tokens";
    call.write(JSON.stringify({ error: { message: "too many", type: "invalid_request_error", param, code: null } }));
    call.end();
    const message = await answer;
    expect(message.statusCode).toBe(status);
    expect(message.headers["retry-after"]).toBe("3");
    expect(JSON.parse(await text(message))).toEqual({
      error: {
        message: "too many",
        type: "invalid_request_error",
        param: upstream === "chat" ? "max_output_tokens" : "max_completion_tokens",
        code: "invalid_request",
        source: "provider",
        requestId: "req_1",
      },
    });
    await relay.closed;
    expect(relay.outcome).toBe("rejected");
  });

  test.each([
    [429, 429, "rate_limit_exceeded"],
    [500, 502, "upstream_failed"],
  ])("gets an upstream's failure (%i) as %i %s", async (status, answered, code) => {
    const { call, answer } = await begin(dialect);
    call.respond(status, { ...JSON_TYPE, "retry-after": "3" });
    call.write('{"error":{"message":"not now","code":null}}');
    call.end();
    const message = await answer;
    expect(message.statusCode).toBe(answered);
    expect(message.headers["retry-after"]).toBe("3");
    expect(JSON.parse(await text(message))).toMatchObject({
      error: { message: "node:0: not now", code, source: "provider" },
    });
  });

  test("gets an upstream's rejection that claims to be JSON but is not", async () => {
    const { call, answer } = await begin(dialect);
    call.respond(400, JSON_TYPE);
    call.write("<html>");
    call.end();
    const message = await answer;
    expect(message.statusCode).toBe(400);
    expect(JSON.parse(await text(message))).toMatchObject({ error: { message: "<html>", source: "provider" } });
  });

  test.each([
    ["is an error", '{"error":{"message":"no"}}', "no"],
    ["is something else", '{"hello":1,"usage":{"prompt_tokens":9,"input_tokens":9}}', "node:0: "],
    ["is not JSON", "<html>", "not a JSON object"],
    ["is null", "null", "not a JSON object"],
    ["is empty", "", "not a JSON object"],
    ["is a stream", "data: {}\n\ndata: [DONE]\n\n", "returned text/event-stream instead of JSON"],
  ])("fails with 502 without a charge if a non-streaming response %s", async (_name, said, message) => {
    const { relay, call, answer } = await begin(dialect, { stream: false });
    call.respond(200, said.startsWith("data") ? SSE : JSON_TYPE);
    call.write(said);
    call.end();
    expect((await answer).statusCode).toBe(502);
    expect(JSON.parse(await text(await answer))).toMatchObject({
      error: { code: "upstream_failed", message: expect.stringContaining(message) as string },
    });
    await relay.closed;
    expect(relay).toMatchObject({ outcome: "upstream_failed", status: null });
    expect(relay.answer?.usage ?? null).toBeNull();
  });

  test("gets a stream, with each event as soon as it can be converted", async () => {
    const scene = await streaming(dialect, frames.slice(0, 6));
    const message = await scene.answer;
    expect(message.headers).toMatchObject({ ...SSE, "cache-control": "no-cache", "x-fairlead-upstream": "node:0" });
    for (const frame of frames.slice(6)) scene.call.write(frame);
    scene.call.end();
    const stream = await text(message);
    assertOrder(dialect, stream);
    expect(new Set(stream.match(/"model":"[^"]*"/g))).toEqual(new Set(['"model":"0/m0"']));
    expect(stream.endsWith("data: [DONE]\n\n")).toBe(true);
    await scene.relay.closed;
    expect(scene.relay.outcome).toBe("ok");
    expect(scene.relay.answer?.usage).toMatchObject({ outputTokens: 7 });
  });

  test("gets a stream even if the upstream does not stream", async () => {
    const { call, answer } = await begin(dialect);
    call.respond(200, JSON_TYPE);
    call.write(JSON.stringify(WHOLE[upstream]));
    call.end();
    const message = await answer;
    expect(message.headers).toMatchObject(SSE);
    const stream = await text(message);
    assertOrder(dialect, stream);
    expect(stream).toContain("Hi ✓");
    expect(stream.endsWith("data: [DONE]\n\n")).toBe(true);
  });

  test("is retried on the next upstream if the first breaks off or reports an error before anything was sent", async () => {
    const scene = await begin(dialect, { upstreams: 4 });
    scene.calls[0]?.cut();
    scene.calls[1]?.respond(200, SSE);
    scene.calls[1]?.write('data: {"error":{"message":"loading"}}\n\n');
    scene.calls[2]?.respond(503, JSON_TYPE);
    scene.calls[3]?.respond(200, SSE);
    for (const frame of frames) scene.calls[3]?.write(frame);
    scene.calls[3]?.end();
    const message = await scene.answer;
    expect(message.headers["x-fairlead-upstream"]).toBe("node:3");
    expect((await text(message)).endsWith("data: [DONE]\n\n")).toBe(true);
    expect(scene.committed()).toBe(1);
  });

  test("is kept alive while the upstream sends only comments", async () => {
    const scene = await streaming(dialect, frames.slice(0, 3));
    await scene.answer;
    scene.pass(1);
    for (let i = 0; i < 3; i++) {
      scene.call.write(": still here\n\n");
      scene.pass(KEEP_ALIVE_MS);
    }
    scene.call.cut();
    const stream = await text(await scene.answer);
    expect(stream.match(/: keep-alive\n\n/g)).toHaveLength(3);
    assertOrder(dialect, stream);
  });

  test.each(["breaks off", "refuses", "sends a failed answer", "falls silent"])(
    "gets the error in the stream if, after a comment, the upstream %s",
    async (how) => {
      const { call, answer, pass } = await begin(dialect);
      pass(KEEP_ALIVE_MS);
      if (how === "breaks off") call.cut();
      else if (how === "falls silent") pass(LIMITS.firstByteMs);
      else {
        call.respond(how === "refuses" ? 429 : 200, JSON_TYPE);
        call.write('{"error":{"message":"busy"}}');
        call.end();
      }
      const stream = await text(await answer);
      expect(stream.startsWith(": keep-alive\n\n")).toBe(true);
      assertOrder(dialect, stream);
      expect(stream).toContain('"error":{"message":');
      expect(stream).not.toContain("[DONE]");
    },
  );

  test("pauses the upstream while its caller does not read, and then resumes it", async () => {
    const at = frames.findIndex((frame) => frame.includes("✓"));
    const scene = await streaming(dialect, frames.slice(0, at));
    const message = await scene.answer;
    message.pause();
    const long = (frames[at] ?? "").replace("✓", "✓".repeat(8000));
    for (let i = 0; i < 2000; i++) scene.call.write(long);
    expect(scene.response.writableLength).toBeLessThan(1024 * 1024);
    message.resume();
    scene.call.cut();
    await scene.relay.closed;
    expect(scene.call.resumed).toBeGreaterThan(0);
  });

  test("is aborted at the upstream when its caller disconnects", async () => {
    const scene = await streaming(dialect, frames.slice(0, 3));
    await scene.answer;
    scene.leave();
    await scene.relay.closed;
    expect(scene.call.closed).toBe(true);
    expect(scene.relay.outcome).toBe("client_left");
  });
});

describe("the list of ignored fields of a converted call", () => {
  test("is sent in a header", async () => {
    const body = { tools: [{ type: "web_search" }], truncation: "auto", include: ["reasoning.encrypted_content"] };
    const { call, answer } = await begin("responses", { stream: false, body });
    call.respond(200, JSON_TYPE);
    call.write(JSON.stringify(WHOLE.chat));
    call.end();
    expect((await answer).headers["x-fairlead-ignored"]).toBe("truncation, tools[0]");
  });

  test("is truncated if it is long", async () => {
    const tools = Array.from({ length: 100 }, () => ({ type: "web_search" }));
    const { call, answer } = await begin("responses", { stream: false, body: { tools } });
    call.respond(200, JSON_TYPE);
    call.write(JSON.stringify(WHOLE.chat));
    call.end();
    expect((await answer).headers["x-fairlead-ignored"]).toMatch(/^tools\[0\], .*tools\[31\], and 68 more$/);
  });
});
