import { DomainError } from "@fairlead/protocol/errors";
import type { AnswerEvent } from "../events/answer-event.ts";
import type { TokenUsage } from "./token-usage.ts";

/** An upstream's response on its way to the client. */
export interface RelayedAnswer {
  /** Takes received bytes. @returns why the call cannot continue; then nothing more is sent. */
  push(chunk: Buffer): DomainError | null;
  /** The upstream ended normally. @returns what is wrong with the response, or null. */
  end(): DomainError | null;
  /** Sends a failure in-band. @returns false if only a broken connection can express it. */
  fail(error: DomainError): boolean;
  /** Whether the upstream reported its end: later failures do not matter. */
  readonly finished: boolean;
  /** Whether a comment can be inserted between two events. */
  readonly canComment: boolean;
  /** As reported by the upstream. */
  readonly usage: TokenUsage | null;
  /** An estimate of the received tokens. */
  readonly outputTokens: number;
  /** Monotonic milliseconds; null if no token arrived, or the response is not a stream. */
  readonly firstTokenAt: number | null;
  /** Whether the upstream reported an error instead of a response. */
  readonly failed: boolean;
}

/**
 * Sends a response's bytes, and the events in them if the caller's sink reads events.
 * @returns false if the response must stop; `fail` is called next.
 */
export type Send = (bytes: Buffer, events?: readonly AnswerEvent[]) => boolean;

export const EVENT_STREAM_TYPE = "text/event-stream; charset=utf-8";

/** Maximum size of a response that is buffered for conversion or storage. */
export const MAX_CONVERTED_BYTES = 4 * 1024 * 1024;

export function tooLong(): DomainError {
  return new DomainError(
    "upstream_failed",
    `returned more than ${MAX_CONVERTED_BYTES} bytes, the maximum for converted responses`,
  );
}

/** A success status without a response. @param what the upstream did: "returned text/html instead of JSON". */
export function noResponse(what: string): DomainError {
  return new DomainError("upstream_failed", what);
}

export function upstreamBrokeOff(cause?: unknown): DomainError {
  return new DomainError("upstream_failed", "the response was cut off", { cause });
}

/** @param words the upstream's message. */
export function reportedFailure(words: string): DomainError {
  return new DomainError("upstream_failed", `reported an error: ${words}`, { note: "reported an error" });
}

export function rejectedCredentials(): DomainError {
  return new DomainError(
    "upstream_rejected_credentials",
    "rejected the credential or account that this platform uses there. Its settings need to be corrected, not the call",
  );
}
