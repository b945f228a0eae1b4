import OpenAI from "openai";
import { describe, expect, test } from "vitest";
import { chatFrame, DONE_FRAME, responseFrame } from "../events/sse.ts";
import { callChunk, chunk, streamChat, streamResponses, usageChunk } from "./bridge.fixture.ts";
import type { ChatEvent, ResponseEvent } from "./wire.ts";

/** OpenAI's own client reads what the bridge writes; its stream helper throws at any event out of place. */

const client = (frames: readonly string[]): OpenAI =>
  new OpenAI({
    apiKey: "k",
    maxRetries: 0,
    fetch: () =>
      Promise.resolve(
        new Response([...frames, DONE_FRAME].join(""), { headers: { "content-type": "text/event-stream" } }),
      ),
  });
const responsesClient = (events: readonly ResponseEvent[]): OpenAI => client(events.map(responseFrame));
const chatClient = (events: readonly ChatEvent[]): OpenAI => client(events.map(chatFrame));

const CHUNKS = [
  chunk({ reasoning_content: "Hm" }),
  chunk({ content: "Look" }),
  chunk({ content: "ing\u2028 ✓" }),
  callChunk(0, "", { id: "a", name: "look" }),
  callChunk(1, "{}", { id: "b", name: "find" }),
  callChunk(0, '{"city":"Paris"}'),
  chunk({}, "tool_calls"),
  usageChunk,
];
async function readAll(stream: AsyncIterable<unknown>): Promise<void> {
  for await (const _event of stream);
}

const ask = { model: "tiny", input: "Hi" };
const chatAsk = {
  model: "tiny",
  messages: [{ role: "user" as const, content: "Hi" }],
  stream_options: { include_usage: true },
};

describe("the openai client", () => {
  test("assembles a converted response stream into the same response with its stream helper", async () => {
    const events = streamResponses(CHUNKS);
    const stream = responsesClient(events).responses.stream(ask);
    const seen: string[] = [];
    for await (const event of stream) seen.push(event.type);
    const final = await stream.finalResponse();
    expect(final.output_text).toBe("Looking\u2028 ✓");
    expect(final.output.map(({ type }) => type)).toEqual(["reasoning", "message", "function_call", "function_call"]);
    expect(final).toMatchObject({ status: "completed", usage: { total_tokens: 18 } });
    expect(seen).toEqual(events.map(({ type }) => type));
  });

  test("assembles a converted chat stream into the same completion with its stream helper", async () => {
    const events = streamChat(streamResponses(CHUNKS), { stream_options: { include_usage: true } });
    const stream = chatClient(events).chat.completions.stream(chatAsk);
    const final = await stream.finalChatCompletion();
    expect(final.choices[0]).toMatchObject({
      finish_reason: "tool_calls",
      message: {
        content: "Looking\u2028 ✓",
        tool_calls: [
          { id: "a", function: { name: "look", arguments: '{"city":"Paris"}' } },
          { id: "b", function: { name: "find", arguments: "{}" } },
        ],
      },
    });
    expect(final.usage?.total_tokens).toBe(18);
  });

  test("throws if a converted stream breaks off, in either dialect", async () => {
    const broken = streamResponses(CHUNKS.slice(0, 3));
    const stream = await responsesClient(broken).responses.create({ ...ask, stream: true });
    await expect(readAll(stream)).rejects.toThrow("cut off");
    await expect(responsesClient(broken).responses.stream(ask).finalResponse()).rejects.toThrow("cut off");
    const chat = await chatClient(streamChat(broken)).chat.completions.create({ ...chatAsk, stream: true });
    await expect(readAll(chat)).rejects.toThrow("cut off");
  });
});
