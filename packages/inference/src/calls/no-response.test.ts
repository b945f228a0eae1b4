import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ANSWER, CHAT, HostStage } from "../host/host-stage.fixture.ts";
import { chunk, DONE, JSON_TYPE, SSE } from "../relay/call-relay.fixture.ts";
import type { FarEnd } from "../upstreams/upstream.contract.ts";

/** Successes of upstreams that hold no response. */

let stage: HostStage;
beforeEach(async () => {
  stage = new HostStage();
  await stage.open();
});
afterEach(() => stage.close());

type Headers = Readonly<Record<string, string>>;

const saying =
  (headers: Headers, ...pieces: readonly string[]) =>
  (far: FarEnd): void => {
    far.respond(200, headers);
    for (const piece of pieces) far.write(piece);
    far.end();
  };

const HTML = { "content-type": "text/html; charset=utf-8" };
const PLAIN = { "content-type": "text/plain" };
const USAGE = { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 };
const WHOLE = JSON.stringify({ ...ANSWER, usage: USAGE });
const STREAM = { ...CHAT, stream: true };

const whole: readonly (readonly [string, (far: FarEnd) => void, string])[] = [
  ["a page", saying(HTML, "<html>Sign in</html>"), "returned text/html instead of JSON"],
  ["a picture", saying({ "content-type": "image/png" }, "PNG"), "returned image/png instead of JSON"],
  ["an event stream", saying(SSE, chunk("a"), DONE), "returned text/event-stream instead of JSON"],
  ["a page that says it is JSON", saying(JSON_TYPE, "<html>"), "not a JSON object"],
  ["a page that says nothing of itself", saying({}, "<html>"), "not a JSON object"],
  ["null", saying(JSON_TYPE, "null"), "not a JSON object"],
  ["a list", saying(JSON_TYPE, "  [1]"), "not a JSON object"],
  ["a text", saying(JSON_TYPE, '"Hi"'), "not a JSON object"],
  ["nothing", saying(JSON_TYPE), "empty body"],
  ["white space", saying(JSON_TYPE, " \n", "\n"), "empty body"],
  ["endless white space", saying(JSON_TYPE, " ".repeat(70_000)), "only whitespace"],
  ["half an object", saying(JSON_TYPE, '{"choices":['), "cut off"],
  [
    "an error",
    saying(JSON_TYPE, '{"error":{"message":"Out of cheese."},"usage":{"prompt_tokens":9}}'),
    "Out of cheese.",
  ],
];

const streamed: readonly (readonly [string, (far: FarEnd) => void, string])[] = [
  ["a page", saying(HTML, "<html>Sign in</html>"), "returned text/html instead of an event stream"],
  ["a page that claims to be a stream", saying(SSE, "<html>\n\n</html>\n\n"), "a web page"],
  ["nothing", saying(SSE), "before its first event"],
  ["nothing, as JSON", saying(JSON_TYPE), "not a JSON object"],
  ["null", saying(JSON_TYPE, "null"), "not a JSON object"],
  ["JSON that is not a completion", saying(JSON_TYPE, '{"usage":{"prompt_tokens":9}}'), "not a chat completion"],
  ["an error", saying(JSON_TYPE, '{"error":{"message":"Out of cheese."}}'), "Out of cheese."],
];

describe.each([
  ["a call", CHAT, whole],
  ["a streamed call", STREAM, streamed],
] as const)("%s whose upstream responds 200 with", (_name, body, cases) => {
  test.each(cases)("%s fails with 502, reports what was received, and costs nothing", async (_what, play, words) => {
    stage.place("box", play);
    const answered = await stage.chat(body);
    expect(answered.status).toBe(502);
    const { error } = (await answered.json()) as { error: { code: string; message: string; source: string } };
    expect(error).toMatchObject({ code: "upstream_failed", source: "provider" });
    expect(error.message).toContain(words);
    expect(error.message).toMatch(/^node:box: /);
    await expect.poll(() => stage.ends).toMatchObject([{ outcome: "upstream_failed", usage: null, cost: 0 }]);
  });

  test.each(cases)("%s is retried on the next upstream", async (_what, play) => {
    stage.place("bad", play, { rank: 0 });
    const good = "stream" in body ? saying(SSE, chunk("Hi"), DONE) : saying(JSON_TYPE, WHOLE);
    stage.place("good", good, { rank: 1 });
    const answered = await stage.chat(body);
    expect(answered.status).toBe(200);
    expect(answered.headers.get("x-fairlead-upstream")).toBe("node:good");
    expect(await answered.text()).toBe("stream" in body ? chunk("Hi") + DONE : WHOLE);
  });
});

describe("a non-streaming response", () => {
  test.each([
    ["in several pieces", JSON_TYPE, [WHOLE.slice(0, 10), WHOLE.slice(10, 30), WHOLE.slice(30)]],
    ["after white space that kept its connection alive", JSON_TYPE, ["\n", "\n\n", ` ${WHOLE}`]],
    ["after a byte order mark", JSON_TYPE, [`\ufeff${WHOLE}`]],
    ["with the type text/plain", PLAIN, [WHOLE]],
    ["without a type", {}, [WHOLE]],
  ])("is forwarded byte for byte as JSON and charged by its usage: %s", async (_name, headers, pieces) => {
    stage.place("box", saying(headers, ...pieces));
    const answered = await stage.chat();
    expect(answered.status).toBe(200);
    expect(answered.headers.get("content-type")).toBe("application/json");
    expect(Buffer.from(await answered.arrayBuffer()).toString()).toBe(pieces.join(""));
    await expect
      .poll(() => stage.ends)
      .toMatchObject([{ outcome: "ok", estimated: false, usage: { inputTokens: 7, outputTokens: 3 } }]);
  });

  test("breaks the caller's connection if it breaks off after its first bytes were sent", async () => {
    stage.place("box", saying(JSON_TYPE, '{"choices":', "["));
    const answered = await stage.chat();
    await expect(answered.text()).rejects.toThrow();
    await expect.poll(() => stage.ends).toMatchObject([{ outcome: "upstream_failed" }]);
  });
});

describe("a streamed call with a non-streaming response", () => {
  const calls = [{ id: "call_1", type: "function", function: { name: "look", arguments: "{}" } }];
  const completion = {
    id: "c1",
    object: "chat.completion",
    created: 5,
    model: "tiny",
    choices: [
      { index: 0, message: { role: "assistant", content: "Hi.", tool_calls: calls }, finish_reason: "tool_calls" },
      { index: 1, message: { role: "assistant", content: "Ho." }, finish_reason: "stop" },
    ],
    usage: USAGE,
  };
  const head = { id: "c1", object: "chat.completion.chunk", created: 5, model: "tiny" };

  async function eventsOf(body: object): Promise<unknown[]> {
    stage.place("box", saying(JSON_TYPE, JSON.stringify(completion)));
    const answered = await stage.chat(body);
    expect(answered.headers.get("content-type")).toMatch(/^text\/event-stream/);
    const frames = (await answered.text()).split("\n\n").filter((frame) => frame !== "");
    expect(frames.at(-1)).toBe("data: [DONE]");
    return frames.slice(0, -1).map((frame) => JSON.parse(frame.slice("data: ".length)) as unknown);
  }

  test("becomes a stream, including tool calls, and is charged", async () => {
    expect(await eventsOf(STREAM)).toEqual([
      {
        ...head,
        choices: [
          {
            index: 0,
            delta: { role: "assistant", content: "Hi.", tool_calls: [{ index: 0, ...calls[0] }] },
            logprobs: null,
            finish_reason: null,
          },
        ],
      },
      { ...head, choices: [{ index: 0, delta: {}, logprobs: null, finish_reason: "tool_calls" }] },
      {
        ...head,
        choices: [{ index: 1, delta: { role: "assistant", content: "Ho." }, logprobs: null, finish_reason: null }],
      },
      { ...head, choices: [{ index: 1, delta: {}, logprobs: null, finish_reason: "stop" }] },
    ]);
    await expect.poll(() => stage.ends).toMatchObject([{ outcome: "ok", usage: { inputTokens: 7, outputTokens: 3 } }]);
  });

  test("includes its usage if the caller requested it", async () => {
    const events = await eventsOf({ ...STREAM, stream_options: { include_usage: true } });
    expect(events.at(-1)).toEqual({ ...head, choices: [], usage: USAGE });
  });

  test("becomes a stream in the responses dialect too", async () => {
    const response = {
      id: "resp_1",
      object: "response",
      status: "completed",
      model: "tiny",
      output: [{ type: "message", id: "m", role: "assistant", content: [{ type: "output_text", text: "Hi." }] }],
      usage: { input_tokens: 7, output_tokens: 3 },
    };
    stage.place("box", saying(JSON_TYPE, JSON.stringify(response)));
    const answered = await fetch(`${stage.url}/v1/responses`, {
      method: "POST",
      headers: { authorization: "Bearer flk_x" },
      body: JSON.stringify({ model: "any/model", input: "Hello", stream: true }),
    });
    const text = await answered.text();
    expect(text.match(/^event: .*$/gm)).toEqual(
      [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
      ].map((name) => `event: response.${name}`),
    );
    await expect.poll(() => stage.ends).toMatchObject([{ outcome: "ok", usage: { outputTokens: 3 } }]);
  });
});
