import { DomainError } from "@fairlead/protocol/errors";
import { type Logprobs, toChatLogprobs } from "../../chat/logprobs.ts";
import { toChatAnnotations } from "../../responses/annotations.ts";
import { itemIdOf, type ReadEvent, readEvent } from "../../responses/response-event.ts";
import { endOf, type OutputPiece, piecesOf } from "../../responses/response-output.ts";
import { type StreamedItem, StreamedItems } from "../../responses/streamed-items.ts";
import type { ChatContext } from "../chat-to-responses/chat-to-responses-request.ts";
import { errorForChat, errorIn, ownError, type ToldError } from "../upstream-error.ts";
import { toChatUsage } from "../usage.ts";
import type { ChatChunk, ChatDelta, ChatEvent, ChatFinish, JsonObject } from "../wire.ts";
import { BETWEEN_THOUGHTS } from "./responses-to-chat-answer.ts";

/**
 * Converts the events of a response to chat completion chunks. Ends with the finish reason and, if requested, the usage only if the upstream
 * reported that it finished, otherwise with an error. Content missing from the deltas is taken from the final items. Never throws for upstream data.
 */
export class ChatStream {
  readonly #context: ChatContext;
  readonly #items = new StreamedItems();
  #events: ChatEvent[] = [];
  #state: "waiting" | "running" | "ended" = "waiting";
  #serviceTier: ChatChunk["service_tier"] | null = null;

  constructor(context: ChatContext) {
    this.#context = context;
  }

  /** Whether the last chunk was sent; the rest of the upstream's stream is ignored. */
  get ended(): boolean {
    return this.#state === "ended";
  }

  /** @param event parsed data of one event. */
  push(event: unknown): readonly ChatEvent[] {
    if (this.ended) return [];
    const read = readEvent(event);
    if (!read)
      return this.fail(
        new DomainError("upstream_failed", "The upstream sent JSON that is not an event of a response."),
      );
    try {
      this.#take(read);
    } catch (error) {
      if (error instanceof DomainError) return this.fail(error);
      throw error;
    }
    return this.#drain();
  }

  /** The upstream's stream ended. */
  end(): readonly ChatEvent[] {
    if (this.ended) return [];
    return this.fail(new DomainError("upstream_failed", "The upstream's response was cut off."));
  }

  /** Fails the completion. */
  fail(error: DomainError): readonly ChatEvent[] {
    if (this.ended) return [];
    this.#fail(ownError(error));
    return this.#drain();
  }

  #fail(error: ToldError): void {
    this.#state = "ended";
    this.#events.push({ error: errorForChat(error, this.#context.ids.requestId) });
  }

  #take(event: ReadEvent): void {
    const { type, response } = event;
    this.#serviceTier = (response?.service_tier as ChatChunk["service_tier"] | null | undefined) ?? this.#serviceTier;
    if (type === "error" || type === "response.failed") {
      this.#fail(failureIn(event));
      return;
    }
    if (type === "response.completed" || type === "response.incomplete") {
      this.#finish(response ?? {});
      return;
    }
    if (type.startsWith("response.")) this.#start();
    this.#grow(event);
  }

  #grow(event: ReadEvent): void {
    const item = (): StreamedItem => this.#items.get(event.place);
    switch (event.type) {
      case "response.output_item.added":
        return this.#complete(this.#items.add(event.place), event.item);
      case "response.output_item.done":
        return this.#complete(item(), event.item);
      case "response.output_text.delta":
        return this.#text(item(), { part: `content ${event.part}`, text: event.delta, logprobs: event.logprobs });
      case "response.refusal.delta":
        return this.#refusal(item(), `content ${event.part}`, event.delta);
      case "response.reasoning_summary_text.delta":
        return this.#thinking(item(), `summary ${event.part}`, event.delta);
      case "response.reasoning_text.delta":
      case "response.reasoning.delta":
        return this.#thinking(item(), `thinking ${event.part}`, event.delta);
      case "response.function_call_arguments.delta":
      case "response.custom_tool_call_input.delta":
        return this.#arguments(item(), event.delta);
      case "response.output_text.annotation.added":
        return this.#annotations(item(), `content ${event.part}`, [event.annotation]);
    }
  }

  /** Sends what a final item contains beyond its deltas. */
  #complete(item: StreamedItem, value: unknown): void {
    for (const piece of piecesOf(value)) {
      if (piece.kind === "call") item.name(piece);
      this.#rest(item, piece);
    }
  }

  #rest(item: StreamedItem, piece: OutputPiece): void {
    const given = item.given(piece.part);
    const text = piece.text.slice(given);
    switch (piece.kind) {
      case "text":
        this.#text(item, { part: piece.part, text, logprobs: given === 0 ? piece.logprobs : [] });
        this.#annotations(item, piece.part, piece.annotations.slice(item.given(`${piece.part} annotations`)));
        return;
      case "refusal":
        return this.#refusal(item, piece.part, text);
      case "thinking":
        return this.#thinking(item, piece.part, text);
      case "call":
        return this.#arguments(item, text);
    }
  }

  #text(item: StreamedItem, piece: { part: string; text: string; logprobs: Logprobs }): void {
    if (piece.text === "") return;
    item.give(piece.part, piece.text.length);
    const content = toChatLogprobs(piece.logprobs);
    this.#delta({ content: piece.text }, content.length > 0 ? { content, refusal: null } : null);
  }

  #refusal(item: StreamedItem, part: string, refusal: string): void {
    if (refusal === "") return;
    item.give(part, refusal.length);
    this.#delta({ refusal });
  }

  #thinking(item: StreamedItem, part: string, text: string): void {
    if (text === "" || !item.thinksIn(part)) return;
    const isNext = item.given(part) === 0 && this.#items.hasThought;
    this.#items.hasThought = true;
    item.give(part, text.length);
    this.#delta({ reasoning_content: isNext ? BETWEEN_THOUGHTS + text : text });
  }

  #annotations(item: StreamedItem, part: string, found: readonly unknown[]): void {
    if (found.length === 0) return;
    item.give(`${part} annotations`, found.length);
    const annotations = toChatAnnotations(found);
    if (annotations.length > 0) this.#delta({ annotations });
  }

  #arguments(item: StreamedItem, text: string): void {
    const call = item.call;
    // A call needs its name; the final item has both.
    if (!call) return;
    if (text === "" && call.isTold) return;
    item.give("call", text.length);
    const { index, type, id, name } = call;
    const head = call.isTold ? {} : { id, type };
    const named = call.isTold ? {} : { name };
    call.isTold = true;
    const body =
      type === "function" ? { function: { ...named, arguments: text } } : { custom: { ...named, input: text } };
    this.#delta({ tool_calls: [{ index, ...head, ...body }] });
  }

  #finish(response: JsonObject): void {
    const error = errorIn(response);
    const { finish } = endOf(response);
    if (error || finish === "failed") {
      this.#fail(error ?? ownError(new DomainError("upstream_failed", "The upstream did not finish its response.")));
      return;
    }
    this.#start();
    const output = Array.isArray(response["output"]) ? response["output"] : [];
    output.forEach((item: unknown, index) => {
      this.#complete(this.#items.get({ index, id: itemIdOf(item) }), item);
    });
    this.#chunk({}, null, finish === "stop" && this.#items.callCount > 0 ? "tool_calls" : finish);
    if (this.#context.includeUsage)
      this.#events.push({ ...this.#head(), choices: [], usage: toChatUsage(response["usage"]) });
    this.#state = "ended";
  }

  #start(): void {
    if (this.#state !== "waiting") return;
    this.#state = "running";
    this.#delta({ role: "assistant", content: "" });
  }

  #delta(delta: ChatDelta, logprobs: ChatChunk["choices"][number]["logprobs"] = null): void {
    this.#chunk(delta, logprobs ?? null, null);
  }

  #chunk(
    delta: ChatDelta,
    logprobs: NonNullable<ChatChunk["choices"][number]["logprobs"]> | null,
    finish: ChatFinish,
  ): void {
    const usage = this.#context.includeUsage ? { usage: null } : {};
    this.#events.push({ ...this.#head(), choices: [{ index: 0, delta, logprobs, finish_reason: finish }], ...usage });
  }

  #head(): Omit<ChatChunk, "choices"> {
    return {
      id: this.#context.ids.answer("chatcmpl"),
      object: "chat.completion.chunk",
      created: this.#context.createdAt,
      model: this.#context.model,
      ...(this.#serviceTier ? { service_tier: this.#serviceTier } : {}),
    };
  }

  #drain(): readonly ChatEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }
}

function failureIn({ response, source }: ReadEvent): ToldError {
  const told = errorIn(response) ?? errorIn(source) ?? errorIn({ error: source });
  return told ?? ownError(new DomainError("upstream_failed", "The upstream's response failed."));
}
