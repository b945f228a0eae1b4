import { once } from "node:events";
import { type ClientRequest, request as httpRequest, type IncomingMessage, type ServerResponse } from "node:http";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { assertChatOrder } from "../../packages/dialects/src/testing/chat-order.ts";
import {
  hasOpenAiDocument,
  NEEDS_OPENAI_DOCUMENT,
  OpenAiDocument,
} from "../../packages/dialects/src/testing/openai-document.ts";
import { responsesOrderProblems } from "../../packages/dialects/src/testing/responses-order.ts";
import { NODE_ID } from "../support/data-plane.ts";
import { BREAKS, FAILS, HELLO, NEVER_ENDS, REFUSED, THINKS } from "../support/scripted-model.ts";
import { readEvents, type StreamEvent } from "../support/stream-events.ts";
import { TwoDialects, WAYS, type Way } from "../support/two-dialects.ts";
import { waitFor } from "../support/wait-for.ts";

/** Both dialects through the whole data plane, to engines that speak the same one and to engines that speak the other. */

type Json = Readonly<Record<string, unknown>>;

const PATHS = { chat: "/chat/completions", responses: "/responses" };
const TOOL = { name: "get_weather", parameters: { type: "object", properties: { city: { type: "string" } } } };
const TOOLS = {
  chat: [{ type: "function", function: TOOL }],
  responses: [{ type: "function", ...TOOL, strict: null }],
};

let stage: TwoDialects;

beforeEach(async () => {
  stage = new TwoDialects();
  await stage.start();
});
afterEach(() => stage.stop());

const until = (what: string, ask: () => boolean): Promise<unknown> =>
  waitFor(what, 10_000, () => Promise.resolve(ask()));

function body({ dialect, model }: Way, text: string, rest: Json = {}): string {
  const asked = dialect === "chat" ? { messages: [{ role: "user", content: text }] } : { input: text };
  return JSON.stringify({ model, ...asked, ...rest });
}

function call(way: Way, text: string, rest: Json = {}): Promise<Response> {
  return fetch(stage.baseUrl + PATHS[way.dialect], {
    method: "POST",
    headers: { authorization: `Bearer ${stage.key}` },
    body: body(way, text, rest),
  });
}

/** A call whose answer nobody reads until the test does. */
function rawCall(way: Way, text: string): ClientRequest {
  const sent = body(way, text, { stream: true });
  const request = httpRequest(stage.baseUrl + PATHS[way.dialect], {
    method: "POST",
    agent: false,
    headers: { authorization: `Bearer ${stage.key}`, "content-length": Buffer.byteLength(sent) },
  });
  request.on("error", () => undefined);
  request.end(sent);
  return request;
}

function assertOrder({ dialect, way }: Way, events: readonly StreamEvent[]): void {
  if (dialect === "chat") return assertChatOrder(events);
  // What is relayed byte by byte is not kept: where it breaks off, the failed response that we end it with holds no items.
  const isKept = (problem: string): boolean =>
    way === "bridged" || !problem.startsWith("response.failed holds 0 items");
  expect(responsesOrderProblems(events).filter(isKept)).toEqual([]);
}

/** One stream of every kind that there is. */
async function streams(way: Way): Promise<StreamEvent[][]> {
  const tools = { tools: TOOLS[way.dialect] };
  const limit = way.dialect === "chat" ? { max_completion_tokens: 1 } : { max_output_tokens: 1 };
  const usage = way.dialect === "chat" ? { stream_options: { include_usage: true } } : {};
  const asked: [string, Json][] = [
    ["Hi", {}],
    [THINKS, {}],
    ["The weather in Paris and Tokyo?", tools],
    ["Hi", limit],
    [BREAKS, {}],
    [FAILS, {}],
  ];
  const told: StreamEvent[][] = [];
  for (const [text, rest] of asked) {
    const answer = await call(way, text, { stream: true, ...usage, ...rest });
    const { events, done } = readEvents(await answer.text());
    expect(done).toBe(text !== BREAKS && text !== FAILS);
    told.push(events);
  }
  return told;
}

describe.each(WAYS)("a call of $dialect, $way", (way) => {
  const isChat = way.dialect === "chat";

  test("returns a complete response with its usage and names the upstream", async () => {
    const answer = await call(way, "Hi");
    expect(answer.headers.get("content-type")).toMatch(/^application\/json/);
    expect(answer.headers.get("x-fairlead-upstream")).toBe("node:node-1");
    expect(await answer.json()).toMatchObject(
      isChat
        ? { object: "chat.completion", choices: [{ message: { content: HELLO } }], usage: { prompt_tokens: 7 } }
        : { object: "response", output: [{ content: [{ text: HELLO }] }], usage: { input_tokens: 7 } },
    );
  });

  test("returns streams of every kind in valid order", async () => {
    const all = await streams(way);
    for (const events of all) assertOrder(way, events);
    expect(JSON.stringify(all[0])).toContain("Hello ");
  });

  test.skipIf(!hasOpenAiDocument)(
    `returns nothing that OpenAI's document does not allow${NEEDS_OPENAI_DOCUMENT}`,
    async () => {
      const document = new OpenAiDocument();
      const problems = (event: StreamEvent): string => {
        if (!isChat) return document.eventProblems(event);
        return document.problems("error" in event ? "ErrorResponse" : "CreateChatCompletionStreamResponse", event);
      };
      for (const event of (await streams(way)).flat()) expect(problems(event)).toBe("");
      const whole = isChat ? "CreateChatCompletionResponse" : "Response";
      for (const text of ["Hi", THINKS]) {
        const answer: unknown = await (await call(way, text)).json();
        expect(document.problems(whole, answer), JSON.stringify(answer)).toBe("");
      }
      expect(document.problems("ErrorResponse", await (await call(way, REFUSED)).json())).toBe("");
    },
  );

  test("returns the engine's refusal in its own dialect", async () => {
    const answer = await call(way, REFUSED);
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({
      error: {
        message: "The model refuses this.",
        type: "invalid_request_error",
        param: isChat ? "messages" : "input",
      },
    });
  });

  test("stops the engine when its caller leaves", async () => {
    const leave = new AbortController();
    const answer = await fetch(stage.baseUrl + PATHS[way.dialect], {
      method: "POST",
      headers: { authorization: `Bearer ${stage.key}` },
      body: body(way, NEVER_ENDS, { stream: true }),
      signal: leave.signal,
    });
    await answer.body?.getReader().read();
    leave.abort();
    await until("the engine to be told", () => stage.upstream.left === 1);
    await until("the call to be over", () => stage.plane.host.load.callsInFlight === 0);
  });

  test("reports a broken connection in-band, and the next call uses a new tunnel", async () => {
    const answer = call(way, NEVER_ENDS, { stream: true });
    await until("the engine to be asked", () => stage.upstream.asked.length === 1);
    const reader = (await answer).body?.pipeThrough(new TextDecoderStream()).getReader();
    let received = "";
    for (let piece = await reader?.read(); piece && !piece.done; piece = await reader?.read()) {
      received += piece.value;
      if (received.includes("Hello")) stage.plane.link.close();
    }
    const { events, done } = readEvents(received);
    assertOrder(way, events);
    expect(done).toBe(false);
    expect(received).toContain('"code":"upstream_failed"');
    await until("a new tunnel", () => stage.plane.tunnelsOpened > 1 && stage.plane.hub.get(NODE_ID) !== null);
    expect((await call(way, "Hi")).status).toBe(200);
  });
});

describe.each(WAYS.filter(({ way }) => way === "bridged"))("a converted call of $dialect", (way) => {
  const chunk = (text: string): string =>
    way.dialect === "responses"
      ? `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: text }, finish_reason: null }] })}\n\n`
      : `data: ${JSON.stringify({ type: "response.output_text.delta", output_index: 0, item_id: "m", delta: text })}\n\n`;

  test("of 8 MB is sent whole, and its memory is released when the response begins", async () => {
    const text = `${"x".repeat(8 * 1024 * 1024)}é`;
    expect((await call(way, text)).status).toBe(200);
    const { body: asked } = stage.upstream.asked[0] ?? {};
    expect(JSON.stringify(asked)).toContain(text);
    await until("the budget to be free", () => stage.plane.host.load.bufferedBytes === 0);
  });

  test("whose response is not read stalls the engine instead of filling the server's memory", async () => {
    const total = 400 * 1024 * 1024;
    let written = 0;
    let answering: ServerResponse | undefined;
    const piece = Buffer.from(chunk("x".repeat(2000)));
    stage.plane.engine.script = (_request, response) => {
      answering = response;
      response.writeHead(200, { "content-type": "text/event-stream" });
      const fill = (): void => {
        while (written < total && !response.destroyed) {
          written += piece.length;
          if (!response.write(piece)) return;
        }
      };
      response.on("drain", fill);
      fill();
    };
    const request = rawCall(way, "Hi");
    const [answer] = (await once(request, "response")) as [IncomingMessage];
    answer.pause();
    let last = -1;
    await until("the engine to stall", () => {
      const stalled = written === last && written > 0;
      last = written;
      return stalled;
    });
    expect(answering?.writableNeedDrain).toBe(true);
    expect(written).toBeLessThan(64 * 1024 * 1024);
    request.destroy();
    await until("the engine to be told", () => answering?.destroyed === true);
  });
});
