import {
  type Answer,
  type AnswerWriter,
  earlierTexts,
  type Json,
  type JsonSchema,
  pieces,
  type Question,
  textOf,
} from "./scripted-model.ts";

/** The responses dialect of the scripted model. */

interface ResponsesBody {
  readonly model: string;
  readonly input: string | readonly Item[];
  readonly tools?: readonly { readonly type: string; readonly name: string; readonly parameters?: JsonSchema }[];
  readonly tool_choice?: "auto" | "none" | "required" | { readonly name: string };
  readonly parallel_tool_calls?: boolean;
  readonly text?: { readonly format?: { readonly type: string; readonly schema?: JsonSchema } };
  readonly max_output_tokens?: number;
  readonly reasoning?: { readonly effort?: string };
}

interface Item {
  readonly type?: string;
  readonly role?: string;
  readonly content?: unknown;
  readonly output?: unknown;
}

export function responsesQuestion(body: Json): Question {
  const asked = body as unknown as ResponsesBody;
  const last = typeof asked.input === "string" ? { role: "user", content: asked.input } : asked.input.at(-1);
  const { tool_choice: choice = "auto" } = asked;
  const format = asked.text?.format;
  const isResult = last !== undefined && "output" in last;
  return {
    text: last?.role === "user" ? textOf(last.content) : "",
    earlier: typeof asked.input === "string" ? [] : earlierTexts(asked.input),
    toolResult: isResult ? textOf(last.output) : null,
    tools: (asked.tools ?? [])
      .filter(({ type }) => type === "function")
      .map(({ name, parameters }) => ({ name, parameters: parameters ?? {} })),
    choice: typeof choice === "string" ? choice : "required",
    forced: typeof choice === "string" ? null : choice.name,
    parallel: asked.parallel_tool_calls !== false,
    format: format?.schema ?? (format?.type === "json_object" ? "json" : null),
    limit: asked.max_output_tokens ?? null,
    effort: asked.reasoning?.effort ?? null,
  };
}

export class ResponsesWriter implements AnswerWriter {
  readonly #body: ResponsesBody & Json;
  readonly #number: number;
  #sequence = 0;

  constructor(body: Json, number: number) {
    this.#body = body as unknown as ResponsesBody & Json;
    this.#number = number;
  }

  whole(answer: Answer): Json {
    const status = answer.cut ? "incomplete" : "completed";
    return {
      ...this.#response(status),
      incomplete_details: answer.cut ? { reason: "max_output_tokens" } : null,
      output: this.#items(answer),
      usage: usageOf(answer),
    };
  }

  frames(answer: Answer): string[] {
    const begun = this.#response("in_progress");
    return [
      this.#event("response.created", { response: begun }),
      this.#event("response.in_progress", { response: begun }),
      ...this.#items(answer).flatMap((item, index) => this.#itemFrames(item, index)),
      this.#event(answer.cut ? "response.incomplete" : "response.completed", { response: this.whole(answer) }),
      "data: [DONE]\n\n",
    ];
  }

  failure(message: string, told: number): string {
    this.#sequence = told;
    const flat = { code: "server_error", message, param: null };
    const error = { type: "server_error", ...flat };
    const response = { ...this.#response("failed"), error: { code: "server_error", message } };
    return this.#event("error", { ...flat, error }) + this.#event("response.failed", { response });
  }

  #itemFrames(item: OutputItem, index: number): string[] {
    const place = { output_index: index, item_id: item.id };
    const begun = { ...item, status: "in_progress" };
    const added = (empty: object): string =>
      this.#event("response.output_item.added", { output_index: index, item: { ...begun, ...empty } });
    const done = (): string => this.#event("response.output_item.done", { output_index: index, item });
    if (item.type === "function_call") {
      const { arguments: text, name } = item;
      return [
        added({ arguments: "" }),
        ...pieces(text).map((delta) => this.#event("response.function_call_arguments.delta", { ...place, delta })),
        this.#event("response.function_call_arguments.done", { ...place, name, arguments: text }),
        done(),
      ];
    }
    return item.type === "reasoning"
      ? [added({ summary: [] }), ...this.#thought(item, place), done()]
      : [added({ content: [] }), ...this.#words(item, place), done()];
  }

  #words({ content: [part] }: Message, place: object): string[] {
    const at = { ...place, content_index: 0 };
    return [
      this.#event("response.content_part.added", { ...at, part: { ...part, text: "" } }),
      ...pieces(part.text).map((delta) => this.#event("response.output_text.delta", { ...at, delta, logprobs: [] })),
      this.#event("response.output_text.done", { ...at, text: part.text, logprobs: [] }),
      this.#event("response.content_part.done", { ...at, part }),
    ];
  }

  #thought({ summary: [part] }: Thought, place: object): string[] {
    const at = { ...place, summary_index: 0 };
    return [
      this.#event("response.reasoning_summary_part.added", { ...at, part: { ...part, text: "" } }),
      ...pieces(part.text).map((delta) => this.#event("response.reasoning_summary_text.delta", { ...at, delta })),
      this.#event("response.reasoning_summary_text.done", { ...at, text: part.text }),
      this.#event("response.reasoning_summary_part.done", { ...at, part }),
    ];
  }

  #items({ thinking, text, calls, cut }: Answer): OutputItem[] {
    const id = (kind: string, index = 0): string => `${kind}_${this.#number}_${index}`;
    const status = cut ? "incomplete" : "completed";
    const thought: Thought = {
      type: "reasoning",
      id: id("rs"),
      summary: [{ type: "summary_text", text: thinking }],
      status: "completed",
    };
    const message: Message = {
      type: "message",
      id: id("msg"),
      role: "assistant",
      status,
      content: [{ type: "output_text", text, annotations: [], logprobs: [] }],
    };
    return [
      ...(thinking === "" ? [] : [thought]),
      ...(text === "" ? [] : [message]),
      ...calls.map((call, index) => ({
        type: "function_call" as const,
        id: id("fc", index),
        call_id: id("call", index),
        status: "completed",
        ...call,
      })),
    ];
  }

  #event(type: string, rest: object): string {
    return `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: this.#sequence++, ...rest })}\n\n`;
  }

  #response(status: string): Json {
    const given = (name: string, otherwise: unknown): unknown => this.#body[name] ?? otherwise;
    return {
      id: `resp_${this.#number}`,
      object: "response",
      created_at: 1_700_000_000,
      completed_at: null,
      status,
      model: this.#body.model,
      output: [],
      error: null,
      incomplete_details: null,
      usage: null,
      instructions: given("instructions", null),
      tools: (this.#body.tools ?? []).map((tool) => ({ description: null, parameters: null, strict: null, ...tool })),
      tool_choice: given("tool_choice", "auto"),
      parallel_tool_calls: given("parallel_tool_calls", true),
      temperature: given("temperature", 1),
      top_p: given("top_p", 1),
      presence_penalty: 0,
      frequency_penalty: 0,
      top_logprobs: 0,
      max_output_tokens: given("max_output_tokens", null),
      max_tool_calls: null,
      reasoning: { effort: null, summary: null },
      text: given("text", { format: { type: "text" } }),
      metadata: given("metadata", {}),
      safety_identifier: null,
      prompt_cache_key: null,
      truncation: "disabled",
      previous_response_id: null,
      store: false,
      background: false,
      service_tier: "default",
    };
  }
}

interface Message {
  readonly type: "message";
  readonly id: string;
  readonly role: "assistant";
  readonly status: string;
  readonly content: readonly [{ readonly type: "output_text"; readonly text: string; annotations: []; logprobs: [] }];
}

interface Thought {
  readonly type: "reasoning";
  readonly id: string;
  readonly summary: readonly [{ readonly type: "summary_text"; readonly text: string }];
  readonly status: string;
}

interface Call {
  readonly type: "function_call";
  readonly id: string;
  readonly call_id: string;
  readonly name: string;
  readonly arguments: string;
  readonly status: string;
}

type OutputItem = Message | Thought | Call;

function usageOf({ inputTokens, outputTokens }: Answer): Json {
  return {
    input_tokens: inputTokens,
    input_tokens_details: { cached_tokens: 2, cache_write_tokens: 0 },
    output_tokens: outputTokens,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: inputTokens + outputTokens,
  };
}
