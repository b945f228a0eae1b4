import type { IncomingHttpHeaders } from "node:http";
import type { DomainError } from "@fairlead/protocol/errors";

/** The seam between the inference host and one concrete place that answers calls. Raw callbacks: this is the hot path. */

export interface UpstreamRequest {
  readonly method: string;
  /** Below the upstream's base: `/chat/completions`. */
  readonly path: string;
  /** Lower-case names, no hop-by-hop headers. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: readonly Buffer[];
}

/** At most one of `onEnd` and `onError` is called, and nothing after either or after `abort`. */
export interface UpstreamHandler {
  onHeaders(status: number, headers: IncomingHttpHeaders): void;
  /** @returns false to pause the answer until `resume`. */
  onData(chunk: Buffer): boolean;
  onEnd(): void;
  /** The answer is missing, or cut after what came so far. */
  onError(error: DomainError): void;
}

export interface UpstreamCall {
  resume(): void;
  /** Ends the upstream's work at once, before the answer's headers too. */
  abort(): void;
}

export interface UpstreamTransport {
  /** Never throws and never calls back before it returns. */
  dispatch(request: UpstreamRequest, handler: UpstreamHandler): UpstreamCall;
}
