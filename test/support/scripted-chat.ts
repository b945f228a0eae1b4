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

/** The chat dialect of the scripted model. */

interface ChatBody {
  readonly model: string;
  readonly messages: readonly { readonly role: string; readonly content?: unknown }[];
  readonly tools?: readonly { readonly function: { readonly name: string; readonly parameters?: JsonSchema } }[];
  readonly tool_choice?: "auto" | "none" | "required" | { readonly function: { readonly name: string } };
  readonly parallel_tool_calls?: boolean;
  readonly response_format?: { readonly type: string; readonly json_schema?: { readonly schema: JsonSchema } };
  readonly max_tokens?: number;
  readonly max_completion_tokens?: number;
  readonly reasoning_effort?: string;
  readonly stream_options?: { readonly include_usage?: boolean };
}

export function chatQuestion(body: Json): Question {
  const asked = body as unknown as ChatBody;
  const last = asked.messages.at(-1);
  const { tool_choice: choice = "auto", response_format: format } = asked;
  return {
    text: last?.role === "user" ? textOf(last.content) : "",
    earlier: earlierTexts(asked.messages),
    toolResult: last?.role === "tool" ? textOf(last.content) : null,
    tools: (asked.tools ?? []).map(({ function: tool }) => ({ name: tool.name, parameters: tool.parameters ?? {} })),
    choice: typeof choice === "string" ? choice : "required",
    forced: typeof choice === "string" ? null : choice.function.name,
    parallel: asked.parallel_tool_calls !== false,
    format: format?.json_schema?.schema ?? (format?.type === "json_object" ? "json" : null),
    limit: asked.max_completion_tokens ?? asked.max_tokens ?? null,
    effort: asked.reasoning_effort ?? null,
  };
}

export class ChatWriter implements AnswerWriter {
  readonly #body: ChatBody;
  readonly #id: string;

  constructor(body: Json, number: number) {
    this.#body = body as unknown as ChatBody;
    this.#id = `chatcmpl-${number}`;
  }

  whole(answer: Answer): Json {
    const calls = this.#calls(answer);
    return {
      ...this.#head("chat.completion"),
      choices: [
        {
          index: 0,
          finish_reason: finishOf(answer),
          logprobs: null,
          message: {
            role: "assistant",
            content: calls.length > 0 ? null : answer.text,
            refusal: null,
            ...(answer.thinking === "" ? {} : { reasoning_content: answer.thinking }),
            ...(calls.length > 0 ? { tool_calls: calls } : {}),
          },
        },
      ],
      usage: usageOf(answer),
    };
  }

  frames(answer: Answer): string[] {
    const deltas: Json[] = [
      { role: "assistant", content: "" },
      ...pieces(answer.thinking).map((text) => ({ reasoning_content: text })),
      ...pieces(answer.text).map((content) => ({ content })),
      ...this.#calls(answer).flatMap(({ id, type, function: called }, index) => [
        { tool_calls: [{ index, id, type, function: { name: called.name, arguments: "" } }] },
        ...pieces(called.arguments).map((text) => ({ tool_calls: [{ index, function: { arguments: text } }] })),
      ]),
    ];
    const usage = this.#body.stream_options?.include_usage === true;
    return [
      ...deltas.map((delta) => this.#chunk(delta, null)),
      this.#chunk({}, finishOf(answer)),
      ...(usage ? [frame({ ...this.#head("chat.completion.chunk"), choices: [], usage: usageOf(answer) })] : []),
      "data: [DONE]\n\n",
    ];
  }

  failure(message: string): string {
    return frame({ error: { message, type: "server_error", param: null, code: null } });
  }

  #chunk(delta: Json, finish: string | null): string {
    const choices = [{ index: 0, delta, logprobs: null, finish_reason: finish }];
    return frame({ ...this.#head("chat.completion.chunk"), choices });
  }

  #calls({ calls }: Answer) {
    return calls.map(({ name, arguments: text }, index) => ({
      id: `call_${this.#id}_${index}`,
      type: "function",
      function: { name, arguments: text },
    }));
  }

  #head(object: string): Json {
    return { id: this.#id, object, created: 1_700_000_000, model: this.#body.model };
  }
}

const frame = (value: Json): string => `data: ${JSON.stringify(value)}\n\n`;

function finishOf({ calls, cut }: Answer): string {
  if (calls.length > 0) return "tool_calls";
  return cut ? "length" : "stop";
}

function usageOf({ inputTokens, outputTokens }: Answer): Json {
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    prompt_tokens_details: { cached_tokens: 2 },
    completion_tokens_details: { reasoning_tokens: 0 },
  };
}
