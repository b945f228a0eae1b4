import { describe, expect, test } from "vitest";
import { readChatStream } from "./chat-stream.ts";

const piece = (content: string): string => `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`;

async function read(...chunks: readonly (string | Uint8Array)[]): Promise<string[]> {
  const encoder = new TextEncoder();
  const bytes = chunks.map((chunk) => (typeof chunk === "string" ? encoder.encode(chunk) : chunk));
  const pieces = [];
  for await (const text of readChatStream(ReadableStream.from(bytes))) pieces.push(text);
  return pieces;
}

describe("readChatStream", () => {
  test("yields the text in order, however it is split into chunks", async () => {
    const whole = new TextEncoder().encode(`${piece("Grüße, ")}${piece("世界")}data: [DONE]\n\n`);
    const single = Array.from(whole, (byte) => Uint8Array.of(byte));
    expect((await read(...single)).join("")).toBe("Grüße, 世界");
  });

  test("skips role, usage and comment events", async () => {
    const role = 'data: {"choices":[{"delta":{"role":"assistant","content":null}}]}\n\n';
    const usage = 'data: {"choices":[],"usage":{"total_tokens":3}}\n\n';
    expect(await read(role, ": keep-alive\n\n", piece("Hi"), usage, "data: [DONE]\n\n")).toEqual(["Hi"]);
  });

  test("fails with the message of an error in the stream", async () => {
    await expect(read(piece("Hi"), 'data: {"error":{"message":"engine gone"}}\n\n')).rejects.toThrow(/engine gone/);
  });

  test("fails when the stream ends before [DONE]", async () => {
    await expect(read(piece("Hi"))).rejects.toThrow(/was cut off/);
  });

  test("fails on data that is not a chat chunk", async () => {
    await expect(read("data: {}\n\n")).rejects.toThrow(/unknown event/);
    await expect(read("data: {\n\n")).rejects.toThrow(/not JSON/);
  });
});
