import { type DomainError, errorBody } from "@fairlead/protocol/errors";
import { AnswerIds } from "../inference/bridge/bridge-call.ts";
import { toResponse } from "../inference/bridge/chat-to-responses-answer.ts";
import { ResponsesStream } from "../inference/bridge/chat-to-responses-stream.ts";
import { isObject } from "../inference/bridge/parse.ts";
import { responseEcho } from "../inference/bridge/response-echo.ts";
import type { ResponsesContext } from "../inference/bridge/responses-to-chat-request.ts";
import { DONE_FRAME } from "../inference/bridge/sse.ts";
import { ToolNames } from "../inference/bridge/tool-names.ts";
import { toChatUsage } from "../inference/bridge/usage.ts";
import type { JsonObject, ResponseEvent } from "../inference/bridge/wire.ts";
import { jsonOr } from "../inference/json-or.ts";
import type { TokenUsage } from "../inference/token-usage.ts";
import { AnswerItems } from "./answer-items.ts";
import {
  type AnswerReader,
  isDone,
  type ReadCall,
  responseHead,
  stoppedResponse,
  type Taken,
  type ToldFailure,
  toldFailure,
} from "./answer-reader.ts";

/** Reads chat completion chunks; what they say is kept as the items of a response (design §7). */
export class ChatReader implements AnswerReader {
  readonly #call: ReadCall;
  readonly #asksForUsage: boolean;
  readonly #context: ResponsesContext;
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

  take(_event: Buffer, data: string | null): Taken {
    if (data === null) return "pass";
    if (isDone(data)) {
      this.#doneSeen = true;
      return "hold";
    }
    const chunk = jsonOr(data, null);
    if (!isObject(chunk)) return "pass";
    if (chunk["error"]) {
      this.failure = toldFailure(chunk["error"]);
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

  /** The last events, which tell the items whole, come when the upstream has finished. */
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
