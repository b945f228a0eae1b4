import type { IncomingHttpHeaders } from "node:http";
import { noResponse, rejectedCredentials } from "@fairlead/dialects/calls/relayed-answer";
import { DomainError } from "@fairlead/protocol/errors";
import { bodyFormOf, mediaType } from "../relay/answer-headers.ts";
import { codingOf, isDecodable } from "../relay/content-decoder.ts";
import type { AttemptFault } from "./retry-rules.ts";
import type { UpstreamLease } from "./upstream-leases.ts";
import { isCallersMistake, type RefusalHead } from "./upstream-refusal.ts";

/** Nothing of the call reached the upstream. */
export class NotReached extends DomainError {}

/** What an upstream's status means for the call. */
export interface UpstreamVerdict {
  /** Why to retry with another upstream; null if the response goes to the caller in any case. */
  readonly fault: AttemptFault | null;
  /** Whether the upstream's message may be passed on. */
  readonly passable: boolean;
}

export interface JudgedHead extends RefusalHead {
  readonly headers: IncomingHttpHeaders;
}

const FINE: UpstreamVerdict = { fault: null, passable: true };
/** 529 is not registered; it means the same as 503. */
const SAYS_BUSY: ReadonlySet<number> = new Set([429, 503, 529]);
const LONGEST_TYPE = 80;

/** By status, then by content type: an error page may claim to be an event stream. @param stream whether events are expected. */
export function classifyFailure(head: JudgedHead, stream: boolean): UpstreamVerdict {
  const { status, headers } = head;
  if (status >= 200 && status < 300) return verdictOnForm(headers, stream);
  if (status === 401 || status === 402 || status === 403) {
    return { fault: { kind: "failed", error: rejectedCredentials() }, passable: false };
  }
  const passable = status >= 400 && bodyFormOf(headers) === "json" && isDecodable(codingOf(headers));
  const isRefusal = passable && status < 500 && status !== 429;
  if (isRefusal) return FINE;
  const kind = SAYS_BUSY.has(status) ? "busy" : "failed";
  return { fault: { kind, error: statusFailure(head) }, passable };
}

/** Updates the upstream's state from a response head. */
export function judgePlace(
  place: UpstreamLease,
  { status, retryAfterSeconds }: JudgedHead,
  { fault, passable }: UpstreamVerdict,
): void {
  // A 5xx in JSON may blame the call, which only the body shows.
  if (status < 500 && (status >= 300 || fault === null)) place.answered();
  else if (!passable) place.failed();
  if (!SAYS_BUSY.has(status) || retryAfterSeconds === undefined) return;
  place.rest({ reason: status === 429 ? "rate_limit_exceeded" : "overloaded", ms: retryAfterSeconds * 1000 });
}

/** A success status with the wrong content type is not a response. */
function verdictOnForm(headers: IncomingHttpHeaders, stream: boolean): UpstreamVerdict {
  const form = bodyFormOf(headers);
  if (form === "json" || form === "unlabelled" || (form === "events" && stream)) return FINE;
  const due = stream ? "an event stream" : "JSON";
  const error = noResponse(`returned ${mediaType(headers).slice(0, LONGEST_TYPE)} instead of ${due}`);
  return { fault: { kind: "failed", error }, passable: false };
}

/** @param error of an attempt without a response. */
export function faultOf(error: DomainError): AttemptFault {
  if (error.code === "upstream_timeout") return { kind: "silent", error };
  const notReached = error instanceof NotReached || error.code === "no_running_engine";
  return { kind: notReached ? "not_reached" : "broken", error };
}

/** @param error of a response that turned out to be an error. */
export function faultInAnswer(error: DomainError): AttemptFault {
  return { kind: error.code === "overloaded" ? "busy" : "failed", error };
}

/** For use without the upstream's message. */
export function statusFailure({ status, retryAfterSeconds }: RefusalHead): DomainError {
  const message = `returned status ${status}`;
  const details = { retryAfterSeconds, source: "provider" } as const;
  if (status === 429) return new DomainError("rate_limit_exceeded", message, details);
  if (status === 529) return new DomainError("overloaded", message, details);
  return new DomainError("upstream_failed", message, details);
}

/** @param what it failed to do in that time. */
export function timedOut(what: string, ms: number): DomainError {
  return new DomainError("upstream_timeout", `${what} within ${ms / 1000} s`);
}

const LEADING_WORDS = /^The (?:upstream|provider)(?:'s)? /;

/** Prefixes the message with the upstream's name: "openai: connection refused". Errors caused by the caller are unchanged. */
export function nameUpstream(error: DomainError, upstreamId: string | null): DomainError {
  if (upstreamId === null || error.source !== "provider" || isCallersMistake(error)) return error;
  const { code, param, retryAfterSeconds, final, source, note, cause } = error;
  const message = `${upstreamId}: ${error.message.replace(LEADING_WORDS, "")}`;
  return new DomainError(code, message, { param: param ?? undefined, retryAfterSeconds, final, source, note, cause });
}
