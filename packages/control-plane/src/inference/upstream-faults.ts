import type { IncomingHttpHeaders } from "node:http";
import { DomainError } from "@fairlead/protocol/errors";
import { isJson } from "./answer-headers.ts";
import { rejectedCredentials } from "./relayed-answer.ts";

/** What an upstream's status means for the call. */
export interface Verdict {
  /** Why this attempt is worth another at a different upstream; null where the answer is the caller's in any case. */
  readonly failure: DomainError | null;
  /** Whether the upstream's own answer may be passed on. */
  readonly passable: boolean;
}

const FINE: Verdict = { failure: null, passable: true };

/** By status first, then by content type: an error page may call itself an event stream. */
export function verdictOn(status: number, headers: IncomingHttpHeaders): Verdict {
  if (status >= 200 && status < 300) return FINE;
  if (status === 401 || status === 402 || status === 403) return { failure: rejectedCredentials(), passable: false };
  const passable = status >= 400 && isJson(headers);
  const isRefusal = passable && status < 500 && status !== 429;
  return isRefusal ? FINE : { failure: statusFailure(status, headers), passable };
}

function statusFailure(status: number, headers: IncomingHttpHeaders): DomainError {
  const seconds = Number(headers["retry-after"]);
  const message = `The upstream answered with status ${status}, which cannot be passed on.`;
  return new DomainError("upstream_failed", message, {
    retryAfterSeconds: Number.isFinite(seconds) && seconds > 0 ? seconds : undefined,
  });
}

export function timedOut(what: string): DomainError {
  return new DomainError("upstream_timeout", `The upstream ${what}.`);
}
