import { DomainError } from "@fairlead/protocol/errors";
import type { TokenUsage } from "./token-usage.ts";

/** An upstream's answer on its way to the caller: what of it may be sent on, and what it told. */
export interface RelayedAnswer {
  /** Takes bytes as they came. @returns why the call cannot go on; then nothing more is sent of it. */
  push(chunk: Buffer): DomainError | null;
  /** The upstream ended properly. @returns what is wrong with the answer all the same. */
  end(): DomainError | null;
  /** Tells the caller of a failure. @returns false where only a broken connection can. */
  fail(error: DomainError): boolean;
  /** Whether the upstream said that this is all: what goes wrong after it is of no matter. */
  readonly finished: boolean;
  /** Whether a comment of ours would stand between two events. */
  readonly canComment: boolean;
  /** As far as the upstream told. */
  readonly usage: TokenUsage | null;
  /** An estimate of what came so far. */
  readonly outputTokens: number;
  /** Monotonic milliseconds; null where no token came, or the answer is no stream. */
  readonly firstTokenAt: number | null;
  /** Whether the upstream told of an error where an answer was due. */
  readonly failed: boolean;
}

/** Where the bytes of an answer go. @returns false where they may not go on: the answer is told to fail next. */
export type Send = (bytes: Buffer) => boolean;

export const EVENT_STREAM_TYPE = "text/event-stream; charset=utf-8";

/** What has to be held of an answer to convert it, at most. */
export const MAX_CONVERTED_BYTES = 32 * 1024 * 1024;

export function tooLong(): DomainError {
  return new DomainError("upstream_failed", "The upstream's answer is longer than any that is converted.");
}

export function brokeOff(cause?: unknown): DomainError {
  return new DomainError("upstream_failed", "The upstream's answer ended before it was whole.", { cause });
}

/** @param words of the upstream. */
export function toldFailure(words: string): DomainError {
  return new DomainError("upstream_failed", `The upstream told of an error: ${words}`);
}

export function rejectedCredentials(): DomainError {
  return new DomainError(
    "upstream_rejected_credentials",
    "The upstream refused the credential or account that this platform has there. The provider's settings are at fault, not the call.",
  );
}
