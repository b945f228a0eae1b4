import type { TokenUsage } from "@fairlead/dialects/calls/token-usage";
import type { JsonObject } from "@fairlead/dialects/convert/wire";
import type { AnswerEvent } from "@fairlead/dialects/events/answer-event";
import { isObject } from "@fairlead/dialects/json/parse";
import { responseEcho } from "@fairlead/dialects/responses/response-echo";
import type { DomainError } from "@fairlead/protocol/errors";

/** Reads a turn's response while it is streamed to the client. */

/** What to do with an event: pass it on, replace it, drop it, or hold it until the commit. */
export type Taken = "pass" | "hide" | "hold" | { readonly frame: string; readonly hold: boolean };

export interface AnswerReader {
  /** Called first, with the public name of the model. */
  answeredBy(model: string): void;
  take(event: AnswerEvent): Taken;
  /** @param body of a non-streamed response, parsed. @throws DomainError `upstream_failed` if it is not a valid response. */
  takeWhole(body: unknown): void;
  /** The items so far, as Responses items; unfinished ones are `incomplete`. */
  items(): JsonObject[];
  /** Their approximate size in memory, in bytes. */
  readonly size: number;
  /** Whether the upstream reported that its response is complete. */
  readonly finished: boolean;
  /** The failure reported in-band; null for none. */
  readonly failure: ToldFailure | null;
  /** The final response object; null if there is none. */
  readonly response: JsonObject | null;
  /** The partial response after the user stopped it. */
  partial(usage: TokenUsage | null): JsonObject;
  /** Frames that end a stopped response, in its dialect. */
  stopped(usage: TokenUsage | null): string;
  /** Frames that end it as failed. */
  failed(error: DomainError): string;
  /** Data that follows the last held frame. */
  readonly lastFrame: string;
}

export interface ToldFailure {
  readonly code: string;
  readonly message: string;
}

/** The call whose response is read. */
export interface ReadCall {
  readonly requestId: string;
  /** As the caller named it, or the default. The upstream may use another name. */
  readonly model: string;
  /** Unix seconds. */
  readonly createdAt: number;
  /** The session's entries in the response's `metadata`. */
  readonly metadata: Readonly<Record<string, string>>;
  /** The caller's request, without additions of the session. */
  readonly body: JsonObject;
}

/** @param error in any of the forms in use. */
export function readerFailure(error: unknown): ToldFailure {
  const told = isObject(error) ? error : {};
  const { code, message } = told;
  return {
    code: typeof code === "string" ? code : "upstream_failed",
    message: typeof message === "string" ? message : "The upstream's response failed.",
  };
}

/** A response object of this call as it begins. */
export function responseHead({ requestId, model, createdAt, metadata, body }: ReadCall): JsonObject {
  return {
    ...responseEcho(body),
    id: requestId.replace(/^[a-z]+_/, "resp_"),
    object: "response",
    created_at: createdAt,
    completed_at: null,
    status: "in_progress",
    model,
    output: [],
    error: null,
    incomplete_details: null,
    usage: null,
    service_tier: "default",
    metadata: toldMetadata(body["metadata"], metadata),
  };
}

/** @param head the initial response object. */
export function stoppedResponse(
  head: JsonObject,
  { output, usage }: { readonly output: readonly JsonObject[]; readonly usage: TokenUsage | null },
): JsonObject {
  const metadata = toldMetadata(head["metadata"], { ended_by: "stop" });
  return { ...head, status: "incomplete", output, usage: responseUsage(usage), metadata };
}

/** Usage in the form of a response. Zeros if unknown, because some clients fail on null. */
function responseUsage(usage: TokenUsage | null): JsonObject {
  const { inputTokens, cachedInputTokens, outputTokens, reasoningTokens } = usage ?? NO_TOKENS;
  return {
    input_tokens: inputTokens,
    input_tokens_details: { cached_tokens: cachedInputTokens, cache_write_tokens: 0 },
    output_tokens: outputTokens,
    output_tokens_details: { reasoning_tokens: reasoningTokens },
    total_tokens: inputTokens + outputTokens,
  };
}

const NO_TOKENS: TokenUsage = { inputTokens: 0, cachedInputTokens: 0, outputTokens: 0, reasoningTokens: 0 };

export function toldMetadata(given: unknown, told: Readonly<Record<string, string>>): JsonObject {
  return { ...(isObject(given) ? given : {}), ...told };
}
