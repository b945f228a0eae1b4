import type { IncomingHttpHeaders } from "node:http";
import { headersForUpstream } from "./answer-headers.ts";
import { DIALECT_PATH } from "./dialect.ts";
import type { UpstreamTimeouts } from "./limits.ts";
import type { Candidate } from "./model-catalog.ts";
import { bodyForUpstream, type SubmittedBody } from "./submitted-body.ts";
import type { UpstreamRequest, UpstreamTransport } from "./upstream.ts";

/** Up to this size one write is cheaper than several. */
const JOIN_BYTES = 16 * 1024;

/** One dispatch to one upstream. */
export interface Attempt {
  readonly upstreamId: string;
  readonly transport: UpstreamTransport;
  readonly request: UpstreamRequest;
  readonly timeouts: UpstreamTimeouts;
}

export interface AttemptsOptions {
  readonly candidates: readonly Candidate[];
  readonly body: SubmittedBody;
  /** The caller's; few of them go on. */
  readonly headers: IncomingHttpHeaders;
  readonly timeouts: UpstreamTimeouts;
}

/** The attempts that a call has, in order: the one place where one is made. Whoever holds it holds the call's body. */
export class Attempts {
  readonly #options: AttemptsOptions;
  #tried = 0;

  constructor(options: AttemptsOptions) {
    this.#options = options;
  }

  /** @returns null where every candidate was tried. */
  next(): Attempt | null {
    const { candidates, body, headers, timeouts } = this.#options;
    const candidate = candidates[this.#tried++];
    if (candidate === undefined) return null;
    const bytes = bodyForUpstream(body, candidate.model);
    const length = bytes.reduce((sum, piece) => sum + piece.length, 0);
    return {
      upstreamId: candidate.upstreamId,
      transport: candidate.open(),
      timeouts: { ...timeouts, ...candidate.timeouts },
      request: {
        method: "POST",
        path: DIALECT_PATH[body.dialect],
        headers: headersForUpstream(headers, length),
        body: length <= JOIN_BYTES ? [Buffer.concat(bytes, length)] : bytes,
      },
    };
  }
}
