import { describe, expect, test } from "vitest";
import { BrokenAnswer } from "../terminal/event-stream.ts";
import { readAnswer } from "./answer-events.ts";

const event = (type: string, rest: object = {}): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...rest })}\n\n`;
const delta = (text: string): string => event("response.output_text.delta", { delta: text });
const DONE = "data: [DONE]\n\n";

async function read(...chunks: readonly string[]): Promise<{ text: string; end: unknown }> {
  let text = "";
  const body = ReadableStream.from(chunks.map((chunk) => new TextEncoder().encode(chunk)));
  const end = await readAnswer(body, (piece) => (text += piece));
  return { text, end };
}

describe("readAnswer", () => {
  test("returns text and refusals, and skips all other events and comments", async () => {
    const started = event("response.created", { response: {} });
    const refused = event("response.refusal.delta", { delta: " I will not." });
    const completed = event("response.completed", { response: {} });
    expect(await read(started, delta("No:"), ": keep-alive\n\n", refused, completed, DONE)).toEqual({
      text: "No: I will not.",
      end: { status: "completed", reason: null },
    });
  });

  test("reports why a response is incomplete", async () => {
    const incomplete = event("response.incomplete", {
      response: { incomplete_details: { reason: "max_output_tokens" } },
    });
    expect((await read(delta("Once"), incomplete)).end).toEqual({ status: "incomplete", reason: "max_output_tokens" });
    const unexplained = event("response.incomplete", { response: { incomplete_details: null } });
    expect((await read(unexplained)).end).toEqual({ status: "incomplete", reason: null });
  });

  test.each([
    ["an error event", event("error", { message: "the node is gone", code: "upstream_failed" }), /the node is gone/],
    ["a failed response", event("response.failed", { response: { error: { message: "gone" } } }), /cut off: gone/],
    ["a stream that ends early", "", /was cut off/],
    ["[DONE] without a final event", DONE, /without a final event/],
  ])("reports %s as a broken response", async (_name, stream, message) => {
    const reading = read(delta("Hel"), stream);
    await expect(reading).rejects.toBeInstanceOf(BrokenAnswer);
    await expect(reading).rejects.toThrow(message);
  });

  test.each([
    ["data that is not an object", "data: 7\n\n"],
    ["a delta without text", event("response.output_text.delta")],
    ["a final event without a response", event("response.incomplete")],
  ])("reports %s as an unknown event", async (_name, stream) => {
    await expect(read(stream)).rejects.toThrow(/unknown event/);
  });
});
