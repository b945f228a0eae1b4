import { readFile } from "node:fs/promises";
import { z } from "zod";
import type { DemoAgentConfig } from "./config.ts";
import { TaskFailure } from "./task-failure.ts";

const completionSchema = z.object({
  choices: z.array(z.object({ message: z.object({ content: z.string().nullable() }) })).min(1),
});
const modelsSchema = z.object({ data: z.array(z.object({ id: z.string() })) });
const refusalSchema = z.object({ error: z.object({ message: z.string() }) });

export interface Answer {
  readonly answer: string;
  readonly model: string;
}

/** Calls the models of the agent's project with the token from the file that the daemon renews. */
export class Models {
  readonly #config: DemoAgentConfig;

  constructor(config: DemoAgentConfig) {
    this.#config = config;
  }

  /** @throws TaskFailure */
  async ask(task: string, wanted: string | null, signal: AbortSignal): Promise<Answer> {
    const model = wanted ?? this.#config.model ?? (await this.#first(signal));
    const body = JSON.stringify({ model, messages: [{ role: "user", content: task }] });
    const answer = await this.#call("/chat/completions", { method: "POST", body, signal });
    const parsed = completionSchema.safeParse(answer);
    const content = parsed.data?.choices[0]?.message.content;
    if (!content) throw new TaskFailure(502, "model_failed", `The model ${model} returned no text.`);
    return { answer: content, model };
  }

  async #first(signal: AbortSignal): Promise<string> {
    const parsed = modelsSchema.safeParse(await this.#call("/models", { signal }));
    const first = parsed.data?.data[0]?.id;
    if (first === undefined)
      throw new TaskFailure(502, "model_failed", "The project has no model that this agent can use.");
    return first;
  }

  async #call(path: string, init: RequestInit): Promise<unknown> {
    const { baseUrl, tokenFile } = this.#config;
    // Read for every call, because the daemon renews it.
    const token = await readFile(tokenFile, "utf8").catch((error: unknown) => {
      throw new TaskFailure(502, "no_token", `Cannot read the token for the inference host: ${causeOf(error)}`);
    });
    const headers = { authorization: `Bearer ${token.trim()}`, "content-type": "application/json" };
    try {
      const response = await fetch(`${baseUrl}${path}`, { ...init, headers });
      const body: unknown = await response.json();
      if (response.ok) return body;
      const said = refusalSchema.safeParse(body).data?.error.message ?? "no reason given";
      throw new TaskFailure(502, "model_refused", `The inference host returned ${response.status}: ${said}`);
    } catch (error) {
      if (error instanceof TaskFailure) throw error;
      throw new TaskFailure(502, "model_failed", `The inference host at ${baseUrl} did not respond: ${causeOf(error)}`);
    }
  }
}

/** `fetch` only says "fetch failed"; the cause has the reason. */
export function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message : error.message;
}
