import type { IncomingHttpHeaders } from "node:http";
import { DomainError } from "@fairlead/protocol/errors";
import type { Prices } from "../billing/prices.ts";
import { headersForUpstream } from "./answer-headers.ts";
import type { Conversion } from "./bridge/conversion.ts";
import { convertBody } from "./bridged-body.ts";
import { DIALECT_PATH, type Dialect } from "./dialect.ts";
import type { UpstreamTimeouts } from "./limits.ts";
import type { Candidate } from "./model-catalog.ts";
import type { CallerItems } from "./recent-items.ts";
import { type AttemptFault, mayAskAgain, mayAskAnother, type RetryLimits, repeatDelay } from "./retry-rules.ts";
import { bodyForUpstream, type SubmittedBody } from "./submitted-body.ts";
import type { UpstreamRequest, UpstreamTransport } from "./upstream.ts";
import type { PlaceUse, UpstreamPlaces } from "./upstream-places.ts";

/** Up to this size one write is cheaper than several. */
const JOIN_BYTES = 16 * 1024;

/** One dispatch to one upstream. */
export interface Attempt {
  /** Takes a place at the upstream; called when it is dispatched. */
  readonly begin: () => PlaceUse;
  readonly transport: UpstreamTransport;
  readonly request: UpstreamRequest;
  readonly asked: Asked;
  /** An estimate of the input that the body only refers to. */
  readonly referredTokens: number;
}

/** What has to be known of an attempt once it is made; nothing of the body. */
export interface Asked {
  readonly upstreamId: string;
  /** Null where it has none. */
  readonly prices: Prices | null;
  readonly timeouts: UpstreamTimeouts;
  /** How the answer becomes one of the caller's dialect; null where the upstream speaks that. */
  readonly conversion: Conversion | null;
}

export interface AttemptsOptions {
  /** The call's. */
  readonly id: string;
  /** Unix seconds. */
  readonly createdAt: number;
  readonly candidates: readonly Candidate[];
  readonly body: SubmittedBody;
  /** The caller's; few of them go on. */
  readonly headers: IncomingHttpHeaders;
  readonly timeouts: UpstreamTimeouts;
  /** What the caller may refer to. */
  readonly recent: CallerItems;
  readonly places: Pick<UpstreamPlaces, "begin">;
  readonly projectId: string;
  readonly retries: RetryLimits;
  /** In [0, 1). */
  readonly random: () => number;
}

/** An attempt after others, and how long to wait before it. */
export interface NextAttempt {
  readonly attempt: Attempt;
  readonly waitMs: number;
}

/**
 * The attempts that a call has: each place once, the best first; then those again that are known to have done nothing, after a
 * while. The one place where one is made. Whoever holds it holds the call's body.
 */
export class Attempts {
  readonly #options: AttemptsOptions;
  /** Not asked yet. */
  readonly #left: Candidate[];
  /** That may be asked again, and what they said. */
  readonly #again = new Map<Candidate, AttemptFault>();
  #current: Candidate | null = null;
  /** Why the first candidate that could not be asked could not be. */
  #refusal: DomainError | null = null;
  #made = 0;
  #repeats = 0;
  #waitedMs = 0;

  constructor(options: AttemptsOptions) {
    this.#options = options;
    this.#left = [...options.candidates];
  }

  /** How many were made so far. */
  get made(): number {
    return this.#made;
  }

  /** @throws DomainError `invalid_request` where the dialects of all places have no words for what the call asks for. */
  first(): Attempt {
    const attempt = this.#untried();
    if (attempt !== null) return attempt;
    throw this.#refusal ?? new DomainError("internal", "A model has no upstream.");
  }

  /** @param fault of the attempt before. @returns null where the call ends with it. */
  after(fault: AttemptFault): NextAttempt | null {
    const current = this.#current;
    if (current === null || this.#made >= this.#options.retries.maxAttempts) return null;
    if (!mayAskAnother(fault.kind, this.#acts(current))) return null;
    if (mayAskAgain(fault.kind)) this.#again.set(current, fault);
    const attempt = this.#untried();
    return attempt === null ? this.#repeat() : { attempt, waitMs: 0 };
  }

  /** Passes over candidates whose dialect has no words for the call. */
  #untried(): Attempt | null {
    for (let candidate = this.#left.shift(); candidate; candidate = this.#left.shift()) {
      const attempt = this.#make(candidate);
      if (attempt !== null) return attempt;
    }
    return null;
  }

  /** Whoever asked for the shortest wait. */
  #repeat(): NextAttempt | null {
    const { random, retries } = this.#options;
    let best: { readonly candidate: Candidate; readonly waitMs: number } | null = null;
    for (const [candidate, fault] of this.#again) {
      const waitMs = repeatDelay(fault, this.#repeats, random());
      if (best === null || waitMs < best.waitMs) best = { candidate, waitMs };
    }
    if (best === null || this.#waitedMs + best.waitMs > retries.maxRetryWaitMs) return null;
    this.#again.delete(best.candidate);
    this.#repeats++;
    this.#waitedMs += best.waitMs;
    const attempt = this.#make(best.candidate);
    return attempt === null ? null : { attempt, waitMs: best.waitMs };
  }

  /** @returns null where the candidate's dialect has no words for the call, or what the call refers to was forgotten meanwhile. */
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

  /** Engines generate and forget. A provider that is asked in the responses dialect may store answers, and run tools by itself. */
  #acts(candidate: Candidate): boolean {
    return candidate.kind === "provider" && dialectAt(candidate, this.#options.body.dialect) === "responses";
  }
}

/** In which dialect a candidate is asked. */
function dialectAt({ protocols }: Candidate, dialect: Dialect): Dialect {
  if (protocols.includes(dialect)) return dialect;
  return dialect === "chat" ? "responses" : "chat";
}

function makeAttempt(candidate: Candidate, options: AttemptsOptions): Attempt {
  const { body, headers, timeouts, id, createdAt, recent, places, projectId } = options;
  const { model, chat, upstreamId, prices } = candidate;
  const isNative = candidate.protocols.includes(body.dialect);
  const converted = isNative ? null : convertBody(body, { id, createdAt, model, ...(chat ? { chat } : {}) }, recent);
  const bytes = converted === null ? bodyForUpstream(body, model) : [Buffer.from(converted.request)];
  const length = bytes.reduce((sum, piece) => sum + piece.length, 0);
  const conversion = converted?.conversion ?? null;
  return {
    asked: { upstreamId, prices, timeouts: { ...timeouts, ...candidate.timeouts }, conversion },
    referredTokens: converted?.referredTokens ?? 0,
    begin: () => places.begin(projectId, candidate),
    transport: candidate.open(),
    request: {
      method: "POST",
      path: DIALECT_PATH[conversion?.dialect ?? body.dialect],
      headers: headersForUpstream(headers, length, candidate.forwardHeaders),
      body: length <= JOIN_BYTES ? [Buffer.concat(bytes, length)] : bytes,
    },
  };
}
