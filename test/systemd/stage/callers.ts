import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";

const PAUSE_MS = 100;
const CALL_MS = 20_000;
const answerSchema = z.object({ usage: z.object({ prompt_tokens: z.number(), completion_tokens: z.number() }) });

/** An answer that came whole. */
export interface Delivered {
  readonly requestId: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
}

export interface Endpoint {
  readonly modelsUrl: string;
  readonly key: string;
  readonly model: string;
}

/** Programs that ask one question after the other, and ask again where no whole answer came. */
export class Callers {
  readonly delivered: Delivered[] = [];
  /** Tries that brought no whole answer, in their own words. */
  readonly failed: string[] = [];
  readonly #endpoint: Endpoint;
  readonly #running: Promise<void>[];
  #stopping = false;

  constructor(endpoint: Endpoint, count: number) {
    this.#endpoint = endpoint;
    this.#running = Array.from({ length: count }, () => this.#askOn());
  }

  /** Lets each get the answer that it waits for. */
  async stop(): Promise<void> {
    this.#stopping = true;
    await Promise.all(this.#running);
  }

  async #askOn(): Promise<void> {
    while (!this.#stopping) {
      const answer = await this.#ask().catch((error: unknown) => String(error));
      if (typeof answer === "string") {
        this.failed.push(answer);
        await sleep(PAUSE_MS);
      } else this.delivered.push(answer);
    }
  }

  async #ask(): Promise<Delivered> {
    const { modelsUrl, key, model } = this.#endpoint;
    const messages = [{ role: "user", content: "What is the capital of Japan?" }];
    const response = await fetch(`${modelsUrl}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model, messages, max_tokens: 16 }),
      signal: AbortSignal.timeout(CALL_MS),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${response.status} ${text}`);
    const { usage } = answerSchema.parse(JSON.parse(text));
    const requestId = response.headers.get("x-request-id") ?? "";
    return { requestId, inputTokens: usage.prompt_tokens, outputTokens: usage.completion_tokens };
  }
}
