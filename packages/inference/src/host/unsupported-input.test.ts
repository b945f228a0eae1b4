import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { JSON_TYPE, SSE } from "../relay/call-relay.fixture.ts";
import { FAILURES_TO_OPEN } from "../routing/breaker.ts";
import type { FarEnd } from "../upstreams/upstream.contract.ts";
import { ANSWER, CHAT, HostStage } from "./host-stage.fixture.ts";

/** Upstreams that blame what they were given with a status of their own failures. */

let stage: HostStage;
beforeEach(async () => {
  stage = new HostStage();
  await stage.open();
});
afterEach(() => stage.close());

// llama.cpp, with a model that reads texts alone.
const NO_PICTURES = "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj";

const failing =
  (status: number, error: object) =>
  (far: FarEnd): void => {
    far.respond(status, JSON_TYPE);
    far.write(JSON.stringify({ error }));
    far.end();
  };

describe.each([false, true])("a failure that blames the input (stream: %s)", (stream) => {
  test.each([
    [500, { code: 500, message: NO_PICTURES, type: "server_error" }],
    [500, { message: "audio input is not supported" }],
    [500, { message: "unsupported content[].type" }],
    [500, { message: "tools param requires --jinja flag" }],
    [500, { message: "This model does not support image input." }],
    [501, { message: "The model is text-only: remove the pictures, or use a vision model." }],
    [500, { message: "max_tokens must be positive", type: "BadRequestError" }],
    [503, { message: "No.", type: "invalid_request_error" }],
  ])("becomes 400 with the upstream's message: %i %j", async (status, error) => {
    stage.place("box", failing(status, error));
    const answered = await stage.chat({ ...CHAT, stream });
    expect(answered.status).toBe(400);
    expect(answered.headers.get("x-should-retry")).toBe("false");
    expect(await answered.json()).toMatchObject({
      error: {
        code: "unsupported_input",
        type: "invalid_request_error",
        message: error.message,
        source: "provider",
      },
    });
    await expect.poll(() => stage.ends).toMatchObject([{ outcome: "rejected", usage: null, cost: 0 }]);
  });

  test("is first retried on the next upstream, which may support the input", async () => {
    stage.place("texts", failing(500, { message: NO_PICTURES }), { rank: 0 });
    stage.place("pictures", (far) => {
      far.respond(200, JSON_TYPE);
      far.write(JSON.stringify(ANSWER));
      far.end();
    });
    const answered = await stage.chat({ ...CHAT, stream });
    expect(answered.status).toBe(200);
    expect(answered.headers.get("x-fairlead-upstream")).toBe("node:pictures");
  });

  test("does not count against the upstream, however often it occurs", async () => {
    stage.place("box", failing(500, { message: NO_PICTURES }));
    for (let i = 0; i <= FAILURES_TO_OPEN; i++) expect((await stage.chat({ ...CHAT, stream })).status).toBe(400);
  });
});

test("a first event that blames the input becomes 400 too", async () => {
  stage.place("box", (far) => {
    far.respond(200, SSE);
    far.write(`data: ${JSON.stringify({ error: { message: NO_PICTURES } })}\n\n`);
    far.end();
  });
  const answered = await stage.chat({ ...CHAT, stream: true });
  expect(answered.status).toBe(400);
  expect(await answered.json()).toMatchObject({ error: { code: "unsupported_input" } });
});

test.each([
  { message: "CUDA error: out of memory" },
  { message: "Unexpected error while reading an image" },
  { message: "The tool server broke off." },
  { message: "Internal error", type: "server_error", code: "500" },
])("a failure that does not blame the input is not changed, and counts against the upstream: %j", async (error) => {
  stage.place("box", failing(500, error));
  for (let i = 0; i < FAILURES_TO_OPEN; i++) expect((await stage.chat()).status).toBe(502);
  expect((await stage.chat()).status).toBe(503);
});
