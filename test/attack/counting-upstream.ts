import type { IncomingMessage, ServerResponse } from "node:http";
import { readBytes } from "../support/scripted-engine.ts";

/** Ordinary English words with their space have one token each; this counts fewer for nobody. */
const BYTES_PER_TOKEN = 5;
const OUTPUT_TOKENS = 2;

interface Asked {
  readonly stream?: boolean;
  readonly messages?: readonly { readonly content?: unknown }[];
}

/** An upstream of the chat dialect that says "Hello" and charges for what it was sent. */
export async function countingUpstream(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { stream = false, messages = [] } = JSON.parse((await readBytes(request)).toString()) as Asked;
  const bytes = Buffer.byteLength(JSON.stringify(messages));
  const prompt = Math.ceil(bytes / BYTES_PER_TOKEN);
  const usage = { prompt_tokens: prompt, completion_tokens: OUTPUT_TOKENS, total_tokens: prompt + OUTPUT_TOKENS };
  const head = { id: "c", created: 1, model: "m" };
  const message = { role: "assistant", content: "Hello" };
  if (!stream) {
    const choices = [{ index: 0, message, finish_reason: "stop" }];
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ ...head, object: "chat.completion", choices, usage }));
    return;
  }
  const chunk = { ...head, object: "chat.completion.chunk" };
  const events = [
    { ...chunk, choices: [{ index: 0, delta: message, finish_reason: null }] },
    { ...chunk, choices: [{ index: 0, delta: {}, finish_reason: "stop" }] },
    { ...chunk, choices: [], usage },
  ];
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.end(`${events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("")}data: [DONE]\n\n`);
}
