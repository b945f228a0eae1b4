import type { TokenUsage } from "@fairlead/dialects/calls/token-usage";
import { ToolNames } from "@fairlead/dialects/chat/tool-names";
import { AnswerIds } from "@fairlead/dialects/convert/bridge-call";
import { toResponse } from "@fairlead/dialects/convert/chat-to-responses/chat-to-responses-answer";
import { ResponsesStream } from "@fairlead/dialects/convert/chat-to-responses/chat-to-responses-stream";
import type { ResponsesContext } from "@fairlead/dialects/convert/responses-to-chat/responses-to-chat-request";
import { toChatUsage } from "@fairlead/dialects/convert/usage";
import type { JsonObject, ResponseEvent } from "@fairlead/dialects/convert/wire";
import type { AnswerEvent } from "@fairlead/dialects/events/answer-event";
import { DONE_FRAME } from "@fairlead/dialects/events/sse";
import { isObject } from "@fairlead/dialects/json/parse";
import { responseEcho } from "@fairlead/dialects/responses/response-echo";
import { type DomainError, errorBody } from "@fairlead/protocol/errors";
import { AnswerItems } from "./answer-items.ts";
import {
  type AnswerReader,
  type ReadCall,
  readerFailure,
  responseHead,
  stoppedResponse,
  type Taken,
  type ToldFailure,
} from "./answer-reader.ts";

/** Reads chat completion chunks and keeps their content as response items (decisions/0022). */
export class ChatReader implements AnswerReader {
  #call: ReadCall;
  readonly #asksForUsage: boolean;
  readonly #context: { -readonly [Field in keyof ResponsesContext]: ResponsesContext[Field] };
  readonly #stream: ResponsesStream;
  readonly #items = new AnswerItems();
  #last: JsonObject | null = null;
  #doneSeen = false;
  #response: JsonObject | null = null;
  finished = false;
  failure: ToldFailure | null = null;

  constructor(call: ReadCall) {
    this.#call = call;
    const { requestId, model, createdAt, metadata, body } = call;
    const { stream_options: options } = body;
    this.#asksForUsage = isObject(options) && options["include_usage"] === true;
    this.#context = {
      ids: new AnswerIds(requestId),
      createdAt,
      model,
      echo: { ...responseEcho({}), metadata },
      tools: new ToolNames(),
      stream: true,
      ignored: [],
    };
    this.#stream = new ResponsesStream(this.#context);
  }

  answeredBy(model: string): void {
    this.#call = { ...this.#call, model };
    this.#context.model = model;
  }

  get response(): JsonObject | null {
    this.#end();
    return this.finished ? this.#response : null;
  }

  get size(): number {
    return this.#items.size;
  }

  get lastFrame(): string {
    return this.#doneSeen || this.failure !== null ? "" : DONE_FRAME;
  }

  take({ value: chunk, isDone }: AnswerEvent): Taken {
    if (isDone) {
      this.#doneSeen = true;
      return "hold";
    }
    if (!isObject(chunk)) return "pass";
    if (chunk["error"]) {
      this.failure = readerFailure(chunk["error"]);
      return "hold";
    }
    this.#last = chunk;
    this.#keep(this.#stream.push(chunk));
    const choices: unknown[] = Array.isArray(chunk["choices"]) ? chunk["choices"] : [];
    if (choices.length === 0 && chunk["usage"] && !this.#asksForUsage) return "hide";
    this.finished ||= choices.some((choice) => isObject(choice) && Boolean(choice["finish_reason"]));
    return this.finished ? "hold" : "pass";
  }

  takeWhole(body: unknown): void {
    const response = toResponse(body, this.#context);
    for (const [index, item] of response.output.entries()) {
      this.#items.push({ type: "response.output_item.done", output_index: index, item });
    }
    this.#response = response as unknown as JsonObject;
    this.finished = true;
  }

  items(): JsonObject[] {
    this.#end();
    return this.#items.view();
  }

  partial(usage: TokenUsage | null): JsonObject {
    return stoppedResponse(responseHead({ ...this.#call, body: {} }), { output: this.#items.view(), usage });
  }

  stopped(usage: TokenUsage | null): string {
    const { createdAt, model, requestId } = this.#call;
    const first = { id: new AnswerIds(requestId).answer("chatcmpl"), created: createdAt, model };
    const { id, created, model: named } = this.#last ?? first;
    const head = { id, object: "chat.completion.chunk", created, model: named };
    const delta = this.#last === null ? { role: "assistant", content: "" } : {};
    const end = { ...head, choices: [{ index: 0, delta, finish_reason: "stop", logprobs: null }] };
    const told = this.#asksForUsage ? [{ ...head, choices: [], usage: toChatUsage(this.partial(usage)["usage"]) }] : [];
    return [end, ...told].map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("") + DONE_FRAME;
  }

  failed(error: DomainError): string {
    return `data: ${JSON.stringify(errorBody(error, this.#call.requestId))}\n\n`;
  }

  /** The final events, with complete items, follow when the upstream has finished. */
  #end(): void {
    if (this.finished && this.#response === null) this.#keep(this.#stream.end());
  }

  #keep(events: readonly ResponseEvent[]): void {
    for (const event of events) {
      if (event.type === "response.failed") this.finished = false;
      if ("response" in event && this.#stream.ended) this.#response = event.response as unknown as JsonObject;
      this.#items.push(event);
    }
  }
}
