import type { IncomingMessage, ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { ChatWriter } from "./scripted-chat.ts";
import { readBytes, ScriptedEngine } from "./scripted-engine.ts";
import type { Answer, AnswerWriter, Json } from "./scripted-model.ts";
import { ResponsesWriter } from "./scripted-responses.ts";

/** What an upstream does with a call. `endless`: it streams until somebody stops it. */
export const DEEDS = [
  "answer",
  "answer slowly",
  "answer at length",
  "refuse",
  "fail",
  "be busy",
  "hang up",
  "break off",
  "fail midway",
  "stay silent",
  "endless",
] as const;
export type Deed = (typeof DEEDS)[number];

/** The question of every call: what is to be done, and how many tokens of it. */
export const deedSchema = z.object({ deed: z.enum(DEEDS), tokens: z.number() });

export const INPUT_TOKENS = 20;
export const CACHED_TOKENS = 2;
const PACE_MS = 20;

/** An API of both dialects that does what its callers ask of it, and counts what it generates to the token. */
export class MeteredUpstream {
  readonly #engine = new ScriptedEngine();
  #port = 0;
  #answers = 0;
  #running = 0;

  get baseUrl(): string {
    return `http://127.0.0.1:${this.#port}/v1`;
  }

  /** How many calls it has and has not ended. */
  get running(): number {
    return this.#running;
  }

  async start(): Promise<void> {
    this.#engine.script = (request, response) => void this.#answer(request, response).catch(() => response.destroy());
    this.#port = await this.#engine.start();
  }

  async stop(): Promise<void> {
    await this.#engine.stop();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.#running++;
    response.once("close", () => this.#running--);
    const body = JSON.parse((await readBytes(request)).toString()) as Json;
    const { deed, tokens } = deedSchema.parse(
      JSON.parse(/\{\\"deed.*?\}/.exec(JSON.stringify(body))?.[0].replaceAll("\\", "") ?? ""),
    );
    const number = ++this.#answers;
    const writer = request.url === "/v1/responses" ? new ResponsesWriter(body, number) : new ChatWriter(body, number);
    switch (deed) {
      case "refuse":
        return send(response, 400, failure("No."));
      case "fail":
        return send(response, 500, failure("It failed."));
      case "be busy":
        return send(response, 429, failure("Not now."));
      case "hang up":
        return void response.destroy();
      case "stay silent":
        return;
      case "answer":
      case "answer slowly":
      case "answer at length":
      case "break off":
      case "fail midway":
      case "endless":
        return body["stream"] === true
          ? stream(response, { writer, deed, answer: answerOf(tokens) })
          : whole(response, { writer, deed, answer: answerOf(tokens) });
    }
  }
}

interface Deeds {
  readonly writer: AnswerWriter;
  readonly deed: Deed;
  readonly answer: Answer;
}

const failure = (message: string): Json => ({ error: { message, type: "x", param: null, code: null } });

function answerOf(tokens: number): Answer {
  const counts = { inputTokens: INPUT_TOKENS, outputTokens: tokens };
  return { thinking: "", text: "word ".repeat(tokens), calls: [], cut: false, ending: "end", ...counts };
}

async function whole(response: ServerResponse, { writer, deed, answer }: Deeds): Promise<void> {
  const text = JSON.stringify(writer.whole(answer));
  if (deed === "answer slowly" || deed === "endless") await sleep(10 * PACE_MS);
  response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(text) });
  if (deed !== "break off" && deed !== "fail midway") return void response.end(text);
  response.write(text.slice(0, text.length / 2));
  await sleep(PACE_MS);
  response.destroy();
}

async function stream(response: ServerResponse, { writer, deed, answer }: Deeds): Promise<void> {
  response.writeHead(200, { "content-type": "text/event-stream" });
  const frames = writer.frames(answer);
  const half = Math.floor(frames.length / 2);
  const paced = deed === "answer slowly" || deed === "endless";
  for (const [told, frame] of frames.entries()) {
    if (response.destroyed) return;
    if (told === half && deed === "break off") return void setImmediate(() => response.destroy());
    if (told === half && deed === "fail midway") return void response.end(writer.failure("It failed.", told));
    response.write(frame);
    if (paced) await sleep(PACE_MS);
  }
  response.end();
}

function send(response: ServerResponse, status: number, body: Json): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}
