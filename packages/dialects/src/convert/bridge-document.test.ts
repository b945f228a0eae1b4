import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CHAT_FIELDS, RESPONSES_FIELDS } from "../json/fields.ts";
import { chatAnswer, chunking, chunksOf, wholeAnswer } from "../testing/chat-arbitraries.ts";
import { hasOpenAiDocument, NEEDS_OPENAI_DOCUMENT, OpenAiDocument } from "../testing/openai-document.ts";
import { CALL, callChunk, chunk, streamChat, streamResponses, usageChunk } from "./bridge.fixture.ts";
import { toResponse } from "./chat-to-responses/chat-to-responses-answer.ts";
import { toResponsesRequest } from "./chat-to-responses/chat-to-responses-request.ts";
import { toChatCompletion } from "./responses-to-chat/responses-to-chat-answer.ts";
import { toChatRequest } from "./responses-to-chat/responses-to-chat-request.ts";

const TOOLS = {
  tools: [
    { type: "custom", name: "patch" },
    { type: "function", name: "look", parameters: { type: "object" } },
  ],
};
const LOGPROBS = {
  content: [{ token: "x", logprob: -0.1, bytes: null, top_logprobs: [{ token: "x", logprob: -0.1, bytes: [120] }] }],
  refusal: null,
};
const CITED = {
  annotations: [
    { type: "url_citation", url_citation: { url: "https://a.example", title: "A", start_index: 0, end_index: 1 } },
  ],
};

describe.skipIf(!hasOpenAiDocument)(`OpenAI's OpenAPI document${NEEDS_OPENAI_DOCUMENT}`, () => {
  const document = hasOpenAiDocument ? new OpenAiDocument() : (undefined as never);
  const few = { numRuns: 60 };

  test("accepts every event of a converted responses stream", () => {
    const seen = new Set<string>();
    const check = (events: ReturnType<typeof streamResponses>): void => {
      for (const event of events) {
        seen.add(event.type);
        expect(document.eventProblems(event)).toBe("");
      }
    };
    fc.assert(
      fc.property(chatAnswer, chunking, (answer, cut) => check(streamResponses(chunksOf(answer, cut), TOOLS))),
      few,
    );
    const spoken = { ...chunk({ content: "x" }), choices: [{ index: 0, delta: { content: "x" }, logprobs: LOGPROBS }] };
    check(streamResponses([spoken, chunk(CITED), chunk({ refusal: "No." }), chunk({}, "stop"), usageChunk]));
    check(streamResponses([chunk({ content: "Half" })]));
    check(streamResponses([callChunk(0, '{"input":"x"}', { id: "a", name: "patch" }), chunk({}, "tool_calls")], TOOLS));
    // Twenty-three kinds in all: a kind that is not made here is judged by nobody.
    expect([...seen].toSorted()).toEqual([
      "error",
      "response.completed",
      "response.content_part.added",
      "response.content_part.done",
      "response.created",
      "response.custom_tool_call_input.delta",
      "response.custom_tool_call_input.done",
      "response.failed",
      "response.function_call_arguments.delta",
      "response.function_call_arguments.done",
      "response.in_progress",
      "response.incomplete",
      "response.output_item.added",
      "response.output_item.done",
      "response.output_text.annotation.added",
      "response.output_text.delta",
      "response.output_text.done",
      "response.reasoning_summary_part.added",
      "response.reasoning_summary_part.done",
      "response.reasoning_summary_text.delta",
      "response.reasoning_summary_text.done",
      "response.refusal.delta",
      "response.refusal.done",
    ]);
  });

  test("accepts complete responses in both dialects, and every chunk of a chat stream", () => {
    const { context } = toChatRequest({ input: "Hi", ...TOOLS }, CALL);
    const chat = toResponsesRequest({ messages: [{ role: "user", content: "Hi" }] }, CALL).context;
    fc.assert(
      fc.property(chatAnswer, chunking, (answer, cut) => {
        const response = toResponse(wholeAnswer(answer), context);
        expect(document.problems("Response", response)).toBe("");
        expect(document.problems("CreateChatCompletionResponse", toChatCompletion(response, chat))).toBe("");
        // The document knows free-form tools in whole answers only; the openai package knows them in streams too.
        const events = streamResponses(chunksOf(answer, cut));
        for (const event of streamChat(events, { stream_options: { include_usage: true } })) {
          expect(document.problems("CreateChatCompletionStreamResponse", event)).toBe("");
        }
      }),
      few,
    );
  });

  test("accepts an error in a chat stream", () => {
    expect(document.problems("ErrorResponse", streamChat([]).at(-1))).toBe("");
  });

  test("accepts a chat request converted from a responses request", () => {
    const { request } = toChatRequest(
      {
        instructions: "Be brief",
        input: [
          { role: "developer", content: [{ type: "input_text", text: "x" }] },
          {
            role: "user",
            content: [
              { type: "input_text", text: "x" },
              { type: "input_image", image_url: "https://a.example/a.png", detail: "high" },
              { type: "input_file", filename: "a.pdf", file_data: "AA==" },
            ],
          },
          { type: "reasoning", id: "rs_1", summary: [] },
          { type: "function_call", call_id: "a", name: "look", arguments: "{}" },
          { type: "function_call_output", call_id: "a", output: [{ type: "input_image", image_url: "data:x" }] },
          { type: "message", role: "assistant", content: [{ type: "refusal", refusal: "No." }] },
        ],
        ...TOOLS,
        tool_choice: { type: "custom", name: "patch" },
        parallel_tool_calls: false,
        text: { format: { type: "json_schema", name: "n", schema: { type: "object" } }, verbosity: "low" },
        reasoning: { effort: "low" },
        include: ["message.output_text.logprobs"],
        top_logprobs: 2,
        max_output_tokens: 50,
        stream: true,
        temperature: 1,
        metadata: { a: "b" },
      },
      CALL,
    );
    expect(document.problems("CreateChatCompletionRequest", request)).toBe("");
  });

  test("accepts a responses request converted from a chat request", () => {
    const { request } = toResponsesRequest(
      {
        messages: [
          { role: "system", content: "Be brief" },
          {
            role: "user",
            content: [
              { type: "text", text: "x" },
              { type: "image_url", image_url: { url: "https://a.example/a.png" } },
              { type: "file", file: { filename: "a.pdf", file_data: "AA==" } },
            ],
          },
          {
            role: "assistant",
            content: "Looking",
            tool_calls: [
              { id: "a", type: "function", function: { name: "look", arguments: "{}" } },
              { id: "b", type: "custom", custom: { name: "patch", input: "x" } },
            ],
          },
          { role: "tool", tool_call_id: "a", content: "sun" },
          { role: "tool", tool_call_id: "b", content: [{ type: "text", text: "ok" }] },
          { role: "assistant", content: null, refusal: "No." },
        ],
        tools: [
          { type: "function", function: { name: "look" } },
          {
            type: "custom",
            custom: { name: "patch", format: { type: "grammar", grammar: { syntax: "lark", definition: "x" } } },
          },
        ],
        tool_choice: {
          type: "allowed_tools",
          allowed_tools: { mode: "auto", tools: [{ type: "function", function: { name: "look" } }] },
        },
        web_search_options: { search_context_size: "low" },
        response_format: { type: "json_schema", json_schema: { name: "n", schema: { type: "object" } } },
        reasoning_effort: "low",
        verbosity: "low",
        logprobs: true,
        top_logprobs: 2,
        max_tokens: 50,
        stream: true,
        stream_options: { include_usage: true, include_obfuscation: false },
        n: 1,
      },
      CALL,
    );
    expect(document.problems("CreateResponse", request)).toBe("");
  });

  test("has no request fields that are missing from the field tables", () => {
    expect(document.propertiesOf("CreateResponse").filter((name) => !(name in RESPONSES_FIELDS))).toEqual([]);
    const chat = document.propertiesOf("CreateChatCompletionRequest").filter((name) => !(name in CHAT_FIELDS));
    expect(chat.toSorted()).toEqual(["logit_bias", "prediction", "seed", "stop"]);
  });
});
