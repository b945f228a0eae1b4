import type { TokenUsage } from "@fairlead/dialects/calls/token-usage";
import type { JsonObject } from "@fairlead/dialects/convert/wire";
import type { AnswerEvent } from "@fairlead/dialects/events/answer-event";
import { DONE_FRAME } from "@fairlead/dialects/events/sse";
import { failureEvents } from "@fairlead/dialects/events/stream-failure";
import { isObject } from "@fairlead/dialects/json/parse";
import type { DomainError } from "@fairlead/protocol/errors";
import { closingEvents } from "./answer-closing.ts";
import { AnswerItems } from "./answer-items.ts";
import {
  type AnswerReader,
  type ReadCall,
  readerFailure,
  responseHead,
  stoppedResponse,
  type Taken,
  type ToldFailure,
  toldMetadata,
} from "./answer-reader.ts";

const FINAL = new Set(["response.completed", "response.incomplete", "response.failed"]);

/** Reads the events of a response. Adds the session to `metadata` in events that contain the whole response. */
export class ResponsesReader implements AnswerReader {
  #call: ReadCall;
  readonly #items = new AnswerItems();
  /** From the first event. */
  #head: JsonObject | null = null;
  #final: JsonObject | null = null;
  #sequence = -1;
  #doneSeen = false;
  finished = false;
  failure: ToldFailure | null = null;

  constructor(call: ReadCall) {
    this.#call = call;
  }

  answeredBy(model: string): void {
    this.#call = { ...this.#call, model };
  }

  get response(): JsonObject | null {
    return this.finished ? this.#final : null;
  }

  get size(): number {
    return this.#items.size;
  }

  get lastFrame(): string {
    return this.#doneSeen || this.failure !== null ? "" : DONE_FRAME;
  }

  take({ value: event, isDone }: AnswerEvent): Taken {
    if (isDone) {
      this.#doneSeen = true;
      return "hold";
    }
    if (!isObject(event)) return "pass";
    if (typeof event["sequence_number"] === "number") this.#sequence = event["sequence_number"];
    const { type, response } = event;
    if (typeof type === "string" && isObject(response)) return this.#lifecycle(type, event, response);
    if (type === "error") {
      this.failure = readerFailure(event["error"] ?? event);
      return "hold";
    }
    this.#items.push(event);
    return "pass";
  }

  takeWhole(body: unknown): void {
    if (!isObject(body)) return;
    this.#finish(this.#told(body));
  }

  items(): JsonObject[] {
    const items = this.#items.view();
    // Some upstreams send items only in the last event.
    if (items.length > 0 || this.#final === null) return items;
    return Array.isArray(this.#final["output"]) ? this.#final["output"].filter(isObject) : [];
  }

  partial(usage: TokenUsage | null): JsonObject {
    return stoppedResponse(this.#head ?? responseHead(this.#call), { output: this.#items.told(), usage });
  }

  stopped(usage: TokenUsage | null): string {
    const begin = this.#head === null ? [{ type: "response.created", response: responseHead(this.#call) }] : [];
    const end = { type: "response.incomplete", response: this.partial(usage) };
    const events: JsonObject[] = [...begin, ...closingEvents(this.#items.open), end];
    return events.map((event) => this.#frame(event)).join("") + DONE_FRAME;
  }

  failed(error: DomainError): string {
    const { requestId, model, createdAt } = this.#call;
    const head = this.#head;
    const begun = head !== null;
    const response = begun ? { id: String(head["id"]), model, createdAt } : null;
    const told = { dialect: "responses" as const, requestId, model, createdAt, errorTold: false };
    return failureEvents({ ...told, begun, sequence: this.#sequence, response }, error);
  }

  #lifecycle(type: string, event: JsonObject, response: JsonObject): Taken {
    const told = this.#told(response);
    this.#head ??= told;
    const isFinal = FINAL.has(type);
    if (type === "response.failed") this.failure ??= readerFailure(response["error"]);
    if (isFinal) this.#finish(told);
    const frame = `event: ${type}\ndata: ${JSON.stringify({ ...event, response: told })}\n\n`;
    return { frame, hold: isFinal };
  }

  #finish(response: JsonObject): void {
    this.#final = response;
    this.finished = this.failure === null && response["status"] !== "failed";
  }

  #told(response: JsonObject): JsonObject {
    const { model, metadata } = this.#call;
    return { ...response, model, metadata: toldMetadata(response["metadata"], metadata) };
  }

  #frame(event: JsonObject): string {
    this.#sequence += 1;
    return `event: ${String(event["type"])}\ndata: ${JSON.stringify({ ...event, sequence_number: this.#sequence })}\n\n`;
  }
}
