import type { DomainError } from "@fairlead/protocol/errors";
import type { Clock } from "@fairlead/protocol/values/clock";
import { LRUCache } from "lru-cache";
import type { Logger } from "pino";
import type { InferenceCounters } from "../host/inference-counters.ts";
import { NotReached } from "./upstream-faults.ts";
import { isCallersMistake } from "./upstream-refusal.ts";

/** Why an attempt failed, for metrics. */
export type FailureReason = "not_reached" | "rate_limited" | "overloaded" | "timeout" | "credentials" | "failed";

export interface FailedAttempt {
  readonly requestId: string;
  readonly projectId: string;
  /** Null if no upstream was called. */
  readonly upstreamId: string | null;
}

/** An upstream that fails every call must not fill the log. */
const LOG_MS = 10_000;
const MOST_LOGGED = 1000;

interface Logged {
  /** Monotonic milliseconds. */
  readonly at: number;
  unlogged: number;
}

/** Reports upstream failures to the operator: counts all, and logs each upstream and reason at a limited rate. */
export class UpstreamFailures {
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #counters: Pick<InferenceCounters, "failed">;
  readonly #logged = new LRUCache<string, Logged>({ max: MOST_LOGGED });

  constructor(log: Logger, clock: Clock, counters: Pick<InferenceCounters, "failed">) {
    this.#log = log;
    this.#clock = clock;
    this.#counters = counters;
  }

  /** @param error the attempt's result. Client mistakes, and errors that are not the upstream's, are ignored. */
  add(attempt: FailedAttempt, error: DomainError): void {
    const reason = reasonOf(error);
    if (reason === null || attempt.upstreamId === null) return;
    this.#counters.failed(attempt.upstreamId, reason);
    const key = `${attempt.projectId} ${attempt.upstreamId} ${reason}`;
    const last = this.#logged.get(key);
    const now = this.#clock.monotonic();
    if (last !== undefined && now - last.at < LOG_MS) {
      last.unlogged++;
      return;
    }
    this.#logged.set(key, { at: now, unlogged: 0 });
    const { requestId, projectId, upstreamId: upstream } = attempt;
    // The upstream's own message may contain parts of the request.
    const words = `${upstream}: ${error.note ?? error.message}`;
    this.#log.warn({ requestId, projectId, upstream, reason, unlogged: last?.unlogged ?? 0 }, words);
  }
}

function reasonOf(error: DomainError): FailureReason | null {
  if (error instanceof NotReached || error.code === "no_running_engine") return "not_reached";
  if (error.source !== "provider" || isCallersMistake(error)) return null;
  return REASONS.get(error.code) ?? "failed";
}

const REASONS: ReadonlyMap<string, FailureReason> = new Map([
  ["rate_limit_exceeded", "rate_limited"],
  ["overloaded", "overloaded"],
  ["upstream_timeout", "timeout"],
  ["upstream_rejected_credentials", "credentials"],
]);
