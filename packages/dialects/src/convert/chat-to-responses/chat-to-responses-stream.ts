import { DomainError } from "@fairlead/protocol/errors";
import { type ReadChunk, readChunk } from "../../chat/chat-chunk.ts";
import { AnswerOutput } from "../../responses/answer-output.ts";
import type { FinalStatus } from "../../responses/output-item.ts";
import type { ResponsesContext } from "../responses-to-chat/responses-to-chat-request.ts";
import { errorForResponses, errorIn, ownError, type ToldError } from "../upstream-error.ts";
import { toResponseUsage } from "../usage.ts";
import type { Emit, JsonObject, ResponseEvent, ResponseObject } from "../wire.ts";

type Status = ResponseObject["status"];
type ErrorCode = NonNullable<ResponseObject["error"]>["code"];
type IncompleteReason = NonNullable<NonNullable<ResponseObject["incomplete_details"]>["reason"]>;

const INCOMPLETE = new Map<string | null, IncompleteReason>([
  ["length", "max_output_tokens"],
  ["max_tokens", "max_output_tokens"],
  ["content_filter", "content_filter"],
]);
/** Limit for an upstream's additional fields. */
const MOST_EXTRAS = 64;
/** Finish reasons with which engines report a failure. */
const FAILED = new Set(["error", "abort"]);

/**
 * Converts chat completion chunks to the events of a response. Ends with `response.completed` or `response.incomplete` only if the upstream
 * reported that it finished, otherwise with `error` and `response.failed`. Never throws for upstream data.
 */
export class ResponsesStream {
  readonly #context: ResponsesContext;
  readonly #output: AnswerOutput;
  #events: ResponseEvent[] = [];
  #sequence = 0;
  #state: "waiting" | "running" | "ended" = "waiting";
  #serviceTier: string | null = null;
  #finishReason: string | null = null;
  #usage: JsonObject | null = null;
  #extras: JsonObject = {};

  constructor(context: ResponsesContext) {
    this.#context = context;
    this.#output = new AnswerOutput({ ids: context.ids, tools: context.tools, emit: this.#emit });
  }

  /** Whether the last event was sent; the rest of the upstream's stream is ignored. */
  get ended(): boolean {
    return this.#state === "ended";
  }

  /** @param chunk parsed data of one event, or a complete chat completion. */
  push(chunk: unknown): readonly ResponseEvent[] {
    if (this.ended) return [];
    const error = errorIn(chunk);
    if (error) return this.#fail(error);
    const read = readChunk(chunk);
    if (!read)
      return this.fail(new DomainError("upstream_failed", "The upstream sent an event that is not a chat completion."));
    try {
      this.#take(read);
    } catch (error) {
      return this.#failWith(error);
    }
    return this.#drain();
  }

  /** The upstream's stream ended, with `[DONE]` or without. */
  end(): readonly ResponseEvent[] {
    if (this.ended) return [];
    const reason = this.#finishReason;
    if (reason === null || FAILED.has(reason)) {
      return this.fail(new DomainError("upstream_failed", "The upstream's response was cut off."));
    }
    const incomplete = INCOMPLETE.get(reason);
    const status: FinalStatus = incomplete === undefined ? "completed" : "incomplete";
    try {
      this.#output.close(status);
    } catch (error) {
      return this.#failWith(error);
    }
    this.#state = "ended";
    const response = this.#response(status, {
      incomplete_details: incomplete === undefined ? null : { reason: incomplete },
    });
    this.#emit({ type: `response.${status}`, response });
    return this.#drain();
  }

  /** Fails the response. Open items stay open: some agents would run a cut-off call that looks complete. */
  fail(error: DomainError): readonly ResponseEvent[] {
    return this.#fail(ownError(error));
  }

  #failWith(error: unknown): readonly ResponseEvent[] {
    if (error instanceof DomainError) return this.fail(error);
    throw error;
  }

  #fail(told: ToldError): readonly ResponseEvent[] {
    if (this.ended) return [];
    this.#start();
    this.#state = "ended";
    const error = errorForResponses(told, this.#context.ids.requestId);
    const { message, code, param } = error;
    this.#emit({ type: "error", message, code, param, error });
    const response = this.#response("failed", { error: { code: RESPONSE_CODES.get(code) ?? "server_error", message } });
    this.#emit({ type: "response.failed", response });
    return this.#drain();
  }

  #take(chunk: ReadChunk): void {
    this.#serviceTier = chunk.serviceTier ?? this.#serviceTier;
    this.#usage = chunk.usage ?? this.#usage;
    if (Object.keys(this.#extras).length < MOST_EXTRAS) this.#extras = { ...this.#extras, ...chunk.extras };
    this.#start();
    for (const piece of chunk.pieces) {
      this.#output.add(piece);
      this.#finishReason = piece.finishReason ?? this.#finishReason;
    }
  }

  #start(): void {
    if (this.#state !== "waiting") return;
    this.#state = "running";
    this.#emit({ type: "response.created", response: this.#response("in_progress", {}) });
    this.#emit({ type: "response.in_progress", response: this.#response("in_progress", {}) });
  }

  readonly #emit: Emit = (event) => {
    this.#events.push({ ...event, sequence_number: this.#sequence } as ResponseEvent);
    this.#sequence += 1;
  };

  #drain(): readonly ResponseEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  #response(status: Status, details: Partial<ResponseObject>): ResponseObject {
    const isFinal = status !== "in_progress";
    return {
      // Upstream-specific fields, which must not override the following ones.
      ...(isFinal ? this.#extras : {}),
      ...this.#context.echo,
      id: this.#context.ids.answer("resp"),
      object: "response",
      created_at: this.#context.createdAt,
      completed_at: null,
      status,
      model: this.#context.model,
      output: isFinal ? this.#output.view(status === "completed" ? "completed" : "incomplete") : [],
      error: null,
      incomplete_details: null,
      usage: isFinal ? toResponseUsage(this.#usage) : null,
      service_tier: (this.#serviceTier ?? "default") as ResponseObject["service_tier"] & string,
      ...details,
    };
  }
}

/** OpenAI's closed list of codes, as far as it applies. The event `error` has the finer code. */
const RESPONSE_CODES = new Map<string | null, ErrorCode>([
  ["rate_limit_exceeded", "rate_limit_exceeded"],
  ["429", "rate_limit_exceeded"],
  ["invalid_prompt", "invalid_prompt"],
  ["context_length_exceeded", "invalid_prompt"],
]);
