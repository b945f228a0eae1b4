import type { IncomingHttpHeaders } from "node:http";
import { EVENT_STREAM_TYPE } from "@fairlead/dialects/calls/relayed-answer";
import { failureEvents } from "@fairlead/dialects/events/stream-failure";
import type { HoldBytes } from "@fairlead/dialects/json/bounded-bytes";
import type { DomainError } from "@fairlead/protocol/errors";
import type { AnswerHead } from "../calls/answer-sink.ts";
import type { CallTimes } from "../calls/call-times.ts";
import type { InferenceCounters } from "../host/inference-counters.ts";
import { retryAfterSeconds } from "../routing/retry-after.ts";
import { headersForCaller } from "./answer-headers.ts";
import type { PlannedCall } from "./answer-plan.ts";

/** The relay's view of its call. */
export interface RelayOptions extends PlannedCall {
  readonly keepAliveMs: number;
  readonly times: CallTimes;
  /** Called once, after the last attempt; the request body can be released. */
  readonly onCommitted: () => void;
  /** Reserves balance for `outputTokens` before they are sent. @returns the error that must end the call, or null. */
  readonly cover: (outputTokens: number) => DomainError | null;
  /** Called with the error of every failed attempt. */
  readonly onFailure: (upstreamId: string | null, error: DomainError) => void;
  /** Reserves memory for converting a response. */
  readonly hold: HoldBytes;
  readonly counters: Pick<InferenceCounters, "relayedBytes" | "firstByte" | "retried">;
}

/** When a rejecting upstream accepts a retry, in seconds. */
export function retryAfterOf(
  status: number,
  headers: IncomingHttpHeaders,
  { createdAt, now, times }: RelayOptions,
): number | undefined {
  return status < 400 ? undefined : retryAfterSeconds(headers, createdAt * 1000 + now() - times.begunAt);
}

/** A comment that keeps proxies from closing a quiet stream. */
export const KEEP_ALIVE: Buffer = Buffer.from(": keep-alive\n\n");

/** The head of a stream that begins with a comment, before the upstream has responded. */
export function keepAliveHead(): AnswerHead {
  return { status: 200, headers: headersForCaller({ "content-type": EVENT_STREAM_TYPE }, true) };
}

/** The error as events of the call's dialect, for a stream that has sent only comments. */
export function failureInBand(call: RelayOptions, error: DomainError): Buffer {
  const nothing = { begun: false, errorTold: false, sequence: -1, response: null };
  return Buffer.from(failureEvents({ ...call, ...nothing }, error));
}
