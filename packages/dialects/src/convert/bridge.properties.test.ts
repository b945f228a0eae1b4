import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { chatAnswer, chunking, chunksOf, wholeAnswer } from "../testing/chat-arbitraries.ts";
import { assertChatOrder } from "../testing/chat-order.ts";
import { assertResponsesOrder } from "../testing/responses-order.ts";
import { CALL, lastResponse, streamResponses } from "./bridge.fixture.ts";
import { toResponse } from "./chat-to-responses/chat-to-responses-answer.ts";
import { toResponsesRequest } from "./chat-to-responses/chat-to-responses-request.ts";
import { ResponsesStream } from "./chat-to-responses/chat-to-responses-stream.ts";
import { toChatCompletion } from "./responses-to-chat/responses-to-chat-answer.ts";
import { toChatRequest } from "./responses-to-chat/responses-to-chat-request.ts";
import { ChatStream } from "./responses-to-chat/responses-to-chat-stream.ts";
import type { ChatChunk, ChatEvent, JsonObject, ResponseEvent } from "./wire.ts";

const TOOLS = {
  tools: [
    { type: "custom", name: "patch" },
    { type: "function", name: "look" },
  ],
};
const { context } = toChatRequest({ input: "Hi", ...TOOLS }, CALL);
const chat = toResponsesRequest(
  { messages: [{ role: "user", content: "Hi" }], stream: true, stream_options: { include_usage: true } },
  CALL,
).context;
/** In depth: whoever changes it throws. */
function frozen<T>(value: T): T {
  if (typeof value === "object" && value !== null) Object.values(Object.freeze(value)).forEach(frozen);
  return value;
}

const REQUIRED = { numRuns: 300 };

/** What a client of chat completions puts together from a stream. */
function collected(events: readonly ChatEvent[]): JsonObject {
  const chunks = events as readonly ChatChunk[];
  const choices = chunks.flatMap((each) => each.choices);
  const joined = (field: "content" | "refusal" | "reasoning_content"): string =>
    choices.map(({ delta }) => delta[field] ?? "").join("");
  const calls: JsonObject[] = [];
  for (const piece of choices.flatMap(({ delta }) => delta.tool_calls ?? [])) {
    const { index, function: called, custom, ...head } = piece;
    const known = (calls[index] ??= { ...head, name: called?.name ?? custom?.name, text: "" }) as { text: string };
    known.text += called?.arguments ?? custom?.input ?? "";
  }
  return {
    text: joined("content"),
    refusal: joined("refusal"),
    thinking: joined("reasoning_content"),
    calls,
    finish: choices.find(({ finish_reason: reason }) => reason)?.finish_reason,
    usage: chunks.at(-1)?.usage,
  };
}

function collectedWhole(answer: ReturnType<typeof toChatCompletion>): JsonObject {
  const [choice] = answer.choices;
  const { content, refusal, reasoning_content: thinking, tool_calls: calls } = choice?.message ?? {};
  return {
    text: content ?? "",
    refusal: refusal ?? "",
    thinking: thinking ?? "",
    calls: (calls ?? []).map((call) =>
      call.type === "function"
        ? { id: call.id, type: call.type, name: call.function.name, text: call.function.arguments }
        : { id: call.id, type: call.type, name: call.custom.name, text: call.custom.input },
    ),
    finish: choice?.finish_reason,
    usage: answer.usage,
  };
}

describe("a chat response", () => {
  test("is converted to the same response, however its stream is split and its calls interleave", () => {
    fc.assert(
      fc.property(chatAnswer, chunking, (answer, cut) => {
        const events = streamResponses(chunksOf(answer, cut), TOOLS);
        assertResponsesOrder(events);
        expect(lastResponse(events)).toEqual(toResponse(wholeAnswer(answer), context));
      }),
      REQUIRED,
    );
  });

  test("fails in the stream, in valid order, and never ends cleanly if it is cut after any chunk", () => {
    fc.assert(
      fc.property(chatAnswer, chunking, fc.nat(), (answer, cut, at) => {
        const chunks = chunksOf(answer, cut);
        const finished = chunks.findIndex(
          (each) => (each["choices"] as { finish_reason: unknown }[])[0]?.finish_reason,
        );
        const events = streamResponses(chunks.slice(0, at % (finished + 1)), TOOLS);
        assertResponsesOrder(events);
        expect(events.at(-1)?.type).toBe("response.failed");
        expect(events.at(-2)?.type).toBe("error");
      }),
      REQUIRED,
    );
  });

  test("never makes the bridge throw or break the order, whatever an upstream sends", () => {
    const field = fc.constantFrom(
      "choices",
      "delta",
      "content",
      "tool_calls",
      "function",
      "arguments",
      "name",
      "index",
      "id",
      "usage",
      "error",
      "finish_reason",
      "model",
    );
    const { tree } = fc.letrec((tie) => ({
      tree: fc.oneof(
        { maxDepth: 5 },
        fc.jsonValue(),
        fc.array(tie("tree"), { maxLength: 3 }),
        fc.dictionary(field, tie("tree"), { maxKeys: 4 }),
      ),
    }));
    fc.assert(
      fc.property(fc.array(tree, { maxLength: 6 }), (sent) => {
        assertResponsesOrder(streamResponses(sent));
        const stream = new ChatStream(chat);
        assertChatOrder([...sent.flatMap((each) => stream.push(each)), ...stream.end()]);
      }),
      REQUIRED,
    );
  });
});

describe("a response that was converted from chat and is converted back", () => {
  const given = fc.tuple(chatAnswer, chunking).map(([answer, cut]) => {
    const stream = new ResponsesStream(context);
    return [...chunksOf(answer, cut).flatMap((each) => stream.push(each)), ...stream.end()];
  });

  test("is the same complete and as a stream, in valid order", () => {
    fc.assert(
      fc.property(given, (events) => {
        const stream = new ChatStream(chat);
        const told = [...events.flatMap((each) => stream.push(each)), ...stream.end()];
        assertChatOrder(told);
        expect(collected(told)).toEqual(collectedWhole(toChatCompletion(lastResponse(events), chat)));
      }),
      REQUIRED,
    );
  });

  test("is complete even without its deltas, because its last events contain everything", () => {
    fc.assert(
      fc.property(given, (events) => {
        const rest = events.filter(({ type }) => !type.endsWith(".delta") && !type.endsWith(".added"));
        const stream = new ChatStream(chat);
        const told = [...rest.flatMap((each) => stream.push(each)), ...stream.end()];
        assertChatOrder(told);
        expect(collected(told)).toEqual(collectedWhole(toChatCompletion(lastResponse(events), chat)));
      }),
      REQUIRED,
    );
  });

  test("fails in the stream and never ends cleanly if it is cut after any event", () => {
    fc.assert(
      fc.property(given, fc.nat(), (events, at) => {
        const stream = new ChatStream(chat);
        const told = [
          ...events.slice(0, at % events.length).flatMap((each: ResponseEvent) => stream.push(each)),
          ...stream.end(),
        ];
        assertChatOrder(told);
        expect(told.at(-1)).toHaveProperty("error");
      }),
      REQUIRED,
    );
  });
});

describe("a request that is converted to the other dialect and back", () => {
  const words = fc.string({ minLength: 1, maxLength: 20 });
  const tool = fc.record({
    name: fc.constantFrom("look", "find"),
    parameters: fc.constant({ type: "object", properties: { a: { type: "string" } } }),
    strict: fc.boolean(),
  });
  const message = fc.oneof(
    words.map((content) => ({ role: "user", content })),
    words.map((content) => ({ role: "assistant", content })),
    fc.tuple(words, words).map(([text, url]) => ({
      role: "user",
      content: [
        { type: "text", text },
        { type: "image_url", image_url: { url, detail: "high" } },
      ],
    })),
  );
  const turns = fc
    .tuple(fc.array(message, { maxLength: 4 }), fc.option(fc.tuple(words, words)))
    .map(([messages, call]) => {
      if (!call) return [{ role: "user", content: "Hi" }, ...messages];
      const [args, output] = call;
      const asked = { id: "call_a", type: "function", function: { name: "look", arguments: args } };
      return [
        { role: "user", content: "Hi" },
        ...messages,
        { role: "user", content: "Go" },
        { role: "assistant", content: "Looking", tool_calls: [asked] },
        { role: "tool", tool_call_id: "call_a", content: output },
      ];
    });
  const chatRequest = fc.record(
    {
      messages: turns,
      tools: fc
        .uniqueArray(tool, { selector: ({ name }) => name, minLength: 1, maxLength: 2 })
        .map((tools) => tools.map((each) => ({ type: "function", function: each }))),
      tool_choice: fc.constantFrom("auto", "required"),
      parallel_tool_calls: fc.boolean(),
      temperature: fc.double({ min: 0, max: 2, noNaN: true }),
      max_completion_tokens: fc.nat(1000),
      reasoning_effort: fc.constantFrom("low", "high"),
      verbosity: fc.constantFrom("low", "high"),
      response_format: fc.constant({
        type: "json_schema",
        json_schema: { name: "n", schema: { type: "object" }, strict: true },
      }),
      metadata: fc.constant({ a: "b" }),
      chat_template_kwargs: fc.constant({ enable_thinking: false }),
    },
    { requiredKeys: ["messages", "tools"] },
  );

  test("means the same and is not modified, because parsed chat turns share their history with later turns", () => {
    const call = { ...CALL, chat: { outputLimit: "max_completion_tokens" as const, developerRole: true } };
    fc.assert(
      fc.property(chatRequest, (body) => {
        const { request } = toResponsesRequest(frozen(body), call);
        const { store, ...back } = toChatRequest(frozen(request), call).request as JsonObject & { store?: unknown };
        expect(store).toBeUndefined();
        expect(back).toEqual({ ...body, model: "tiny" });
      }),
      REQUIRED,
    );
  });
});
