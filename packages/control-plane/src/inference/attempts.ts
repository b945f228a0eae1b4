import type { IncomingHttpHeaders } from "node:http";
import { DomainError } from "@fairlead/protocol/errors";
import { headersForUpstream } from "./answer-headers.ts";
import type { Conversion } from "./bridge/conversion.ts";
import { convertBody } from "./bridged-body.ts";
import { DIALECT_PATH } from "./dialect.ts";
import type { UpstreamTimeouts } from "./limits.ts";
import type { Candidate } from "./model-catalog.ts";
import type { CallerItems } from "./recent-items.ts";
import { bodyForUpstream, type SubmittedBody } from "./submitted-body.ts";
import type { UpstreamRequest, UpstreamTransport } from "./upstream.ts";

/** Up to this size one write is cheaper than several. */
const JOIN_BYTES = 16 * 1024;

/** One dispatch to one upstream. */
export interface Attempt {
  readonly transport: UpstreamTransport;
  readonly request: UpstreamRequest;
  readonly asked: Asked;
  /** An estimate of the input that the body only refers to. */
  readonly referredTokens: number;
}

/** What has to be known of an attempt once it is made; nothing of the body. */
export interface Asked {
  readonly upstreamId: string;
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
}

/** The attempts that a call has, in order: the one place where one is made. Whoever holds it holds the call's body. */
export class Attempts {
  readonly #options: AttemptsOptions;
  #tried = 0;
  /** Why the first candidate that could not be asked could not be; null once any was asked. */
  #refusal: DomainError | null = null;
  #asked = false;

  constructor(options: AttemptsOptions) {
    this.#options = options;
  }

  /**
   * Passes over candidates whose dialect has no words for what the call asks for.
   * @returns null where every candidate was tried.
   * @throws DomainError `invalid_request` where none of them could be asked.
   */
  next(): Attempt | null {
    const { candidates } = this.#options;
    for (let candidate = candidates[this.#tried++]; candidate; candidate = candidates[this.#tried++]) {
      const attempt = this.#attemptAt(candidate);
      if (attempt !== null) return attempt;
    }
    if (this.#refusal !== null && !this.#asked) throw this.#refusal;
    return null;
  }

  #attemptAt(candidate: Candidate): Attempt | null {
    try {
      const attempt = makeAttempt(candidate, this.#options);
      this.#asked = true;
      return attempt;
    } catch (error) {
      if (!(error instanceof DomainError)) throw error;
      this.#refusal ??= error;
      return null;
    }
  }
}

function makeAttempt(candidate: Candidate, options: AttemptsOptions): Attempt {
  const { body, headers, timeouts, id, createdAt, recent } = options;
  const { model, chat, upstreamId } = candidate;
  const isNative = candidate.protocols.includes(body.dialect);
  const converted = isNative ? null : convertBody(body, { id, createdAt, model, ...(chat ? { chat } : {}) }, recent);
  const bytes = converted === null ? bodyForUpstream(body, model) : [Buffer.from(converted.request)];
  const length = bytes.reduce((sum, piece) => sum + piece.length, 0);
  const conversion = converted?.conversion ?? null;
  return {
    asked: { upstreamId, timeouts: { ...timeouts, ...candidate.timeouts }, conversion },
    referredTokens: converted?.referredTokens ?? 0,
    transport: candidate.open(),
    request: {
      method: "POST",
      path: DIALECT_PATH[conversion?.dialect ?? body.dialect],
      headers: headersForUpstream(headers, length, candidate.forwardHeaders),
      body: length <= JOIN_BYTES ? [Buffer.concat(bytes, length)] : bytes,
    },
  };
}
