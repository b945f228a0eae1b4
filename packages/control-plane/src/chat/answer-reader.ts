import type { DomainError } from "@fairlead/protocol/errors";
import { isObject } from "../inference/bridge/parse.ts";
import { responseEcho } from "../inference/bridge/response-echo.ts";
import type { JsonObject } from "../inference/bridge/wire.ts";
import type { TokenUsage } from "../inference/token-usage.ts";

/** What is read of a turn's answer while it goes to its caller. */

/** What becomes of one event: it goes on as it came, in other words, not at all; or it waits for the commit. */
export type Taken = "pass" | "hide" | "hold" | { readonly frame: string; readonly hold: boolean };

export interface AnswerReader {
  /** @param event one whole event of the answer. @param data its data; null for a comment. */
  take(event: Buffer, data: string | null): Taken;
  /** @param body of an answer that is no stream, parsed. @throws DomainError `upstream_failed` for what is no answer. */
  takeWhole(body: unknown): void;
  /** The answer's items so far, as Responses items; those that are not done are `incomplete`. */
  items(): JsonObject[];
  /** About how many bytes of memory they take. */
  readonly size: number;
  /** Whether the upstream said that its answer is whole. */
  readonly finished: boolean;
  /** What was told of a failure, in-band; null where nothing was. */
  readonly failure: ToldFailure | null;
  /** The final response object; null where there is none. */
  readonly response: JsonObject | null;
  /** The response as far as it came, of an answer that a person has stopped. */
  partial(usage: TokenUsage | null): JsonObject;
  /** Frames that end such an answer, in its dialect. */
  stopped(usage: TokenUsage | null): string;
  /** Frames that end it as failed. */
  failed(error: DomainError): string;
  /** What belongs behind the last frame that was held. */
  readonly lastFrame: string;
}

export interface ToldFailure {
  readonly code: string;
  readonly message: string;
}

/** What a reader knows of the call whose answer it reads. */
export interface ReadCall {
  readonly requestId: string;
  /** As the caller named it, or the default. */
  readonly model: string;
  /** Unix seconds. */
  readonly createdAt: number;
  /** What the response tells of the session, in its `metadata`. */
  readonly metadata: Readonly<Record<string, string>>;
  /** What the caller sent, without what the session has added. */
  readonly body: JsonObject;
}

/** @param error in any of the forms in use. */
export function toldFailure(error: unknown): ToldFailure {
  const told = isObject(error) ? error : {};
  const { code, message } = told;
  return {
    code: typeof code === "string" ? code : "upstream_failed",
    message: typeof message === "string" ? message : "The upstream's answer failed.",
  };
}

export const isDone = (data: string): boolean => data.trim() === "[DONE]";

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

/** @param head the response as it began. */
export function stoppedResponse(
  head: JsonObject,
  { output, usage }: { readonly output: readonly JsonObject[]; readonly usage: TokenUsage | null },
): JsonObject {
  const metadata = toldMetadata(head["metadata"], { ended_by: "stop" });
  return { ...head, status: "incomplete", output, usage: responseUsage(usage), metadata };
}

/** A usage in the words of a response; zeros where nothing is known: some clients fail over a null. */
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
