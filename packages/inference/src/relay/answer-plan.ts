import type { IncomingHttpHeaders } from "node:http";
import { CollectedAnswer } from "@fairlead/dialects/calls/collected-answer";
import { EVENT_STREAM_TYPE, type RelayedAnswer, type Send } from "@fairlead/dialects/calls/relayed-answer";
import { answerAsStream } from "@fairlead/dialects/calls/streamed-answer";
import { WholeAnswer } from "@fairlead/dialects/calls/whole-answer";
import type { Conversion } from "@fairlead/dialects/convert/conversion";
import { EventAnswer, type EventAnswerOptions } from "@fairlead/dialects/events/event-answer";
import type { HoldBytes } from "@fairlead/dialects/json/bounded-bytes";
import type { DomainError } from "@fairlead/protocol/errors";
import type { AnswerHead } from "../calls/answer-sink.ts";
import type { AttemptRequest } from "../calls/attempts.ts";
import { type RefusalHead, refusalText } from "../routing/upstream-refusal.ts";
import { AnswerAfterKeepalive } from "./answer-after-keepalive.ts";
import { bodyFormOf, headersForCaller } from "./answer-headers.ts";
import { bridgedAnswer, headersForConverted, headersOfRefusal, ignoredHeader } from "./bridged-answer.ts";
import { codingOf } from "./content-decoder.ts";

/** Head of an upstream's response. */
export interface UpstreamHead extends RefusalHead {
  readonly headers: IncomingHttpHeaders;
}

export interface PlannedCall extends EventAnswerOptions {
  /** Whether the caller requested a stream. */
  readonly stream: boolean;
  /** Whether the caller's sink reads events. */
  readonly readsEvents: boolean;
}

export interface PlanOptions {
  readonly call: PlannedCall;
  /** Null if the upstream speaks the caller's dialect. */
  readonly conversion: Conversion | null;
  /** Whether the client's stream has already started. */
  readonly isLate: boolean;
  /** Sends an error to the client in-band. */
  readonly tell: (error: DomainError) => void;
  readonly hold: HoldBytes;
}

/** How a response is sent to the client. */
export interface AnswerPlan {
  readonly answer: RelayedAnswer;
  readonly head: AnswerHead;
}

/** Whether the body is parsed rather than passed on, and must therefore be decoded. */
export function isRead({ status, headers }: UpstreamHead, { call, conversion, isLate }: PlanOptions): boolean {
  if (conversion !== null || status >= 400 || call.readsEvents) return true;
  return call.stream && (isLate || bodyFormOf(headers) !== "events");
}

/** The head of the response after decoding its body. */
export function asPlain({ headers, ...head }: UpstreamHead): UpstreamHead {
  const { "content-encoding": _coding, ...plain } = headers;
  return { ...head, headers: plain };
}

/** @param response whose status and type may be sent to the client (`classifyFailure`). */
export function planAnswer(send: Send, response: UpstreamHead, options: PlanOptions): AnswerPlan {
  const { status, headers } = response;
  if (status >= 400) return planRefusal(send, response, options);
  const { call, conversion, tell, hold } = options;
  const { dialect, stream, now, readsEvents } = call;
  if (conversion !== null) {
    const answer = bridgedAnswer(send, { conversion, headers, stream, now, tell, hold, readsEvents });
    return { answer, head: { status, headers: headersForConverted(headers, stream) } };
  }
  if (!stream) {
    const readable = codingOf(headers) === null;
    return { answer: new WholeAnswer(send, { dialect, readable }), head: { status, headers: headersOfWhole(headers) } };
  }
  if (bodyFormOf(headers) === "json") {
    const convert = (body: unknown): string => answerAsStream(body, call);
    const answer = new CollectedAnswer(send, { dialect, convert, tell, hold, readsEvents });
    return { answer, head: { status, headers: headersForConverted(headers, true) } };
  }
  // Event boundaries in a compressed stream are unknown, so it is forwarded unparsed.
  const isPlain = codingOf(headers) === null;
  const answer = isPlain
    ? new EventAnswer(send, call, readsEvents ? hold : null)
    : new WholeAnswer(send, { dialect, readable: false });
  return { answer, head: { status, headers: headersOfEvents(headers, isPlain) } };
}

function planRefusal(send: Send, response: UpstreamHead, { call, isLate, tell, hold }: PlanOptions): AnswerPlan {
  const convert = (body: unknown): string => refusalText(body, response, call);
  const answer = isLate
    ? new AnswerAfterKeepalive(response, tell)
    : new CollectedAnswer(send, { dialect: null, convert, tell: null, hold, readsEvents: false });
  return { answer, head: { status: response.status, headers: headersOfRefusal(response.headers) } };
}

/** SDKs decide how to parse a body by its type alone. */
function headersOfWhole(headers: IncomingHttpHeaders): AnswerHead["headers"] {
  const own = headersForCaller(headers, false);
  return bodyFormOf(headers) === "json" ? own : { ...own, "content-type": "application/json" };
}

function headersOfEvents(headers: IncomingHttpHeaders, isPlain: boolean): AnswerHead["headers"] {
  const own = headersForCaller(headers, isPlain);
  return bodyFormOf(headers) === "events" ? own : { ...own, "content-type": EVENT_STREAM_TYPE };
}

/** Headers about the call on every response. @param asked null if no upstream was called. */
export function headersOfCall(
  asked: AttemptRequest | null,
  attempts: number,
  overheadMs: number,
): Record<string, string> {
  return {
    "x-fairlead-upstream": asked?.upstreamId ?? "",
    "x-fairlead-attempts": String(attempts),
    "x-fairlead-overhead-ms": overheadMs.toFixed(2),
    ...ignoredHeader(asked?.conversion ?? null),
  };
}
