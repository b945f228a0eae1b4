import type { IncomingHttpHeaders } from "node:http";
import { bodyForUpstream, type SubmittedBody } from "@fairlead/dialects/calls/submitted-body";
import { isStatefulAt } from "@fairlead/dialects/calls/upstream-dialect";
import type { Conversion } from "@fairlead/dialects/convert/conversion";
import { DIALECT_SPECS } from "@fairlead/dialects/dialect-specs";
import { DomainError } from "@fairlead/protocol/errors";
import type { UpstreamTimeouts } from "../host/limits.ts";
import type { Prices } from "../ports/prices.ts";
import { headersForUpstream } from "../relay/answer-headers.ts";
import { convertBody } from "../relay/bridged-body.ts";
import type { CallerItems } from "../routing/recent-items.ts";
import {
  type AttemptFault,
  mayAskAgain,
  mayAskAnother,
  type RetryLimits,
  repeatDelay,
} from "../routing/retry-rules.ts";
import type { Rest, UpstreamLease, UpstreamLeases } from "../routing/upstream-leases.ts";
import type { UpstreamRequest, UpstreamTransport } from "../upstreams/upstream.ts";
import type { Candidate } from "./model-catalog.ts";

/** Below this size, one write is cheaper than several. */
const JOIN_BYTES = 16 * 1024;

/** A node's models are called by its identifier. */
const NODE_PREFIX = /^node:/;

/** One dispatch to one upstream. */
export interface Attempt {
  /** Acquires the upstream's slot at dispatch. */
  readonly begin: () => UpstreamLease;
  readonly transport: UpstreamTransport;
  readonly request: UpstreamRequest;
  readonly asked: AttemptRequest;
  /** Bytes of input that the body only references. */
  readonly referredBytes: number;
}

/** Facts about an attempt that outlive its body. */
export interface AttemptRequest {
  readonly upstreamId: string;
  /** As callers name it: `<provider>/<model>`. */
  readonly model: string;
  /** Null for none. */
  readonly prices: Prices | null;
  readonly timeouts: UpstreamTimeouts;
  /** Converts the response to the caller's dialect; null if none is needed. */
  readonly conversion: Conversion | null;
}

export interface AttemptsOptions {
  /** The call's. */
  readonly id: string;
  /** Unix seconds. */
  readonly createdAt: number;
  readonly candidates: readonly Candidate[];
  readonly body: SubmittedBody;
  /** The caller's headers; few are forwarded. */
  readonly headers: IncomingHttpHeaders;
  readonly timeouts: UpstreamTimeouts;
  /** Items that the caller may reference. */
  readonly recent: CallerItems;
  readonly places: Pick<UpstreamLeases, "begin" | "restOf">;
  readonly projectId: string;
  readonly retries: RetryLimits;
  /** In [0, 1). */
  readonly random: () => number;
}

/** An attempt, and the delay before it. */
export interface NextAttempt {
  readonly attempt: Attempt;
  readonly waitMs: number;
}

/**
 * The attempts of a call: each candidate once, best first; then, after a delay, those that certainly did nothing. A reference to
 * this object keeps the call's body in memory.
 */
export class Attempts {
  readonly #options: AttemptsOptions;
  /** Not tried yet. */
  readonly #left: Candidate[];
  /** Retryable candidates and their errors; null for those skipped because they are paused. */
  readonly #later = new Map<Candidate, AttemptFault | null>();
  #current: Candidate | null = null;
  /** Why the first unusable candidate could not be used. */
  #refusal: DomainError | null = null;
  #made = 0;
  #repeats = 0;
  #waitedMs = 0;

  constructor(options: AttemptsOptions) {
    this.#options = options;
    this.#left = [...options.candidates];
  }

  /** Number of attempts so far. */
  get made(): number {
    return this.#made;
  }

  /**
   * @throws DomainError `invalid_request` if no candidate's dialect can express the call; `rate_limit_exceeded` if all are paused for longer than a
   * call waits.
   */
  first(): NextAttempt {
    const attempt = this.#untried();
    if (attempt !== null) return { attempt, waitMs: 0 };
    const next = this.#repeat();
    if (next !== null) return next;
    throw this.#soonestRest() ?? this.#refusal ?? new DomainError("internal", "A model has no upstream.");
  }

  /** @param fault of the previous attempt. @returns null if the call ends with it. */
  after(fault: AttemptFault): NextAttempt | null {
    const current = this.#current;
    if (current === null || this.#made >= this.#options.retries.maxAttempts) return null;
    if (!mayAskAnother(fault.kind, this.#acts(current))) return null;
    if (mayAskAgain(fault.kind)) this.#later.set(current, fault);
    const attempt = this.#untried();
    return attempt === null ? this.#repeat() : { attempt, waitMs: 0 };
  }

  /** Skips paused candidates and those whose dialect cannot express the call. */
  #untried(): Attempt | null {
    for (let candidate = this.#left.shift(); candidate; candidate = this.#left.shift()) {
      if (this.#options.places.restOf(candidate) !== null) {
        this.#later.set(candidate, null);
        continue;
      }
      const attempt = this.#make(candidate);
      if (attempt !== null) return attempt;
    }
    return null;
  }

  /** The candidate with the shortest delay. */
  #repeat(): NextAttempt | null {
    const { random, retries, places } = this.#options;
    let best: { readonly candidate: Candidate; readonly waitMs: number } | null = null;
    for (const [candidate, fault] of this.#later) {
      const delay = fault === null ? 0 : repeatDelay(fault, this.#repeats, random());
      const waitMs = Math.max(delay, places.restOf(candidate)?.ms ?? 0);
      if (best === null || waitMs < best.waitMs) best = { candidate, waitMs };
    }
    if (best === null || this.#waitedMs + best.waitMs > retries.maxRetryWaitMs) return null;
    this.#later.delete(best.candidate);
    this.#repeats++;
    this.#waitedMs += best.waitMs;
    const attempt = this.#make(best.candidate);
    return attempt === null ? null : { attempt, waitMs: best.waitMs };
  }

  /** The error of the candidate that is available first; null if none is paused. */
  #soonestRest(): DomainError | null {
    let soonest: { readonly upstreamId: string; readonly rest: Rest } | null = null;
    for (const candidate of this.#later.keys()) {
      const rest = this.#options.places.restOf(candidate);
      if (rest === null || (soonest !== null && soonest.rest.ms <= rest.ms)) continue;
      soonest = { upstreamId: candidate.upstreamId, rest };
    }
    return soonest === null ? null : stillResting(soonest.upstreamId, soonest.rest);
  }

  /** @returns null if the candidate's dialect cannot express the call, or a referenced item has expired. */
  #make(candidate: Candidate): Attempt | null {
    try {
      const attempt = makeAttempt(candidate, this.#options);
      this.#current = candidate;
      this.#made++;
      return attempt;
    } catch (error) {
      if (!(error instanceof DomainError)) throw error;
      this.#refusal ??= error;
      return null;
    }
  }

  /** Engines are stateless. A provider may store responses and run tools itself, in some dialects. */
  #acts(candidate: Candidate): boolean {
    return candidate.kind === "provider" && isStatefulAt(candidate.protocols, this.#options.body.dialect);
  }
}

function stillResting(upstreamId: string, { reason, ms }: Rest): DomainError {
  const retryAfterSeconds = Math.max(1, Math.ceil(ms / 1000));
  const message = `${upstreamId}: asked to be called again after ${retryAfterSeconds} s`;
  return new DomainError(reason, message, { source: "provider", retryAfterSeconds });
}

function makeAttempt(candidate: Candidate, options: AttemptsOptions): Attempt {
  const { body, headers, timeouts, id, createdAt, recent, places, projectId } = options;
  const { model, chat, upstreamId, prices } = candidate;
  const calledModel = `${upstreamId.replace(NODE_PREFIX, "")}/${model}`;
  const call = { id, createdAt, model, calledModel, ...(chat ? { chat } : {}) };
  const converted = convertBody(body, { protocols: candidate.protocols, call, recent });
  const bytes = converted === null ? bodyForUpstream(body, model) : [Buffer.from(converted.request)];
  const length = bytes.reduce((sum, piece) => sum + piece.length, 0);
  const conversion = converted?.conversion ?? null;
  return {
    asked: { upstreamId, model: calledModel, prices, timeouts: { ...timeouts, ...candidate.timeouts }, conversion },
    referredBytes: converted?.referredBytes ?? 0,
    begin: () => places.begin(projectId, candidate),
    transport: candidate.open(),
    request: {
      method: "POST",
      path: DIALECT_SPECS[conversion?.dialect ?? body.dialect].path,
      headers: headersForUpstream(headers, length, candidate.forwardHeaders),
      body: length <= JOIN_BYTES ? [Buffer.concat(bytes, length)] : bytes,
    },
  };
}
