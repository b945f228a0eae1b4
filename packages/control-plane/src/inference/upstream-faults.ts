import type { IncomingHttpHeaders } from "node:http";
import { DomainError } from "@fairlead/protocol/errors";
import { isJson } from "./answer-headers.ts";
import { rejectedCredentials } from "./relayed-answer.ts";
import type { AttemptFault } from "./retry-rules.ts";

/** Nothing of the call came to the upstream. */
export class NotReached extends DomainError {}

/** What an upstream's status means for the call. */
export interface Verdict {
  /** Why this attempt is worth another at a different upstream; null where the answer is the caller's in any case. */
  readonly fault: AttemptFault | null;
  /** Whether the upstream's own words may be passed on. */
  readonly passable: boolean;
}

const FINE: Verdict = { fault: null, passable: true };
const SAYS_BUSY: ReadonlySet<number> = new Set([429, 503]);

/** By status first, then by content type: an error page may call itself an event stream. */
export function verdictOn(status: number, headers: IncomingHttpHeaders): Verdict {
  if (status >= 200 && status < 300) return FINE;
  if (status === 401 || status === 402 || status === 403) {
    return { fault: { kind: "failed", error: rejectedCredentials() }, passable: false };
  }
  const passable = status >= 400 && isJson(headers) && (headers["content-encoding"] ?? "identity") === "identity";
  const isRefusal = passable && status < 500 && status !== 429;
  if (isRefusal) return FINE;
  const kind = SAYS_BUSY.has(status) ? "busy" : "failed";
  return { fault: { kind, error: statusFailure(status, headers) }, passable };
}

/** @param error of a connection that brought no answer. */
export function faultOf(error: DomainError): AttemptFault {
  if (error.code === "upstream_timeout") return { kind: "silent", error };
  const notReached = error instanceof NotReached || error.code === "no_running_engine";
  return { kind: notReached ? "not_reached" : "broken", error };
}

function statusFailure(status: number, headers: IncomingHttpHeaders): DomainError {
  const message = `The upstream answered with status ${status}, which cannot be passed on.`;
  return new DomainError("upstream_failed", message, { retryAfterSeconds: retryAfterSeconds(headers) });
}

/** In the three forms that upstreams use. A date is taken by the upstream's own clock. */
export function retryAfterSeconds(headers: IncomingHttpHeaders): number | undefined {
  const milliseconds = headers["retry-after-ms"] ?? headers["x-ms-retry-after-ms"];
  if (milliseconds !== undefined) return positive(Number(milliseconds) / 1000);
  const text = headers["retry-after"];
  if (text === undefined) return undefined;
  return positive(Number(text)) ?? positive((Date.parse(text) - Date.parse(headers.date ?? "")) / 1000);
}

function positive(seconds: number): number | undefined {
  return Number.isFinite(seconds) && seconds > 0 ? seconds : undefined;
}

export function timedOut(what: string): DomainError {
  return new DomainError("upstream_timeout", `The upstream ${what}.`);
}
