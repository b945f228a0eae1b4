import type { IncomingHttpHeaders } from "node:http";
import type { DomainError } from "@fairlead/protocol/errors";

/** Interface between the inference host and an upstream. Raw callbacks, because this is the hot path. */

export interface UpstreamRequest {
  readonly method: string;
  /** Relative to the upstream's base URL: `/chat/completions`. */
  readonly path: string;
  /** Lower-case names, no hop-by-hop headers. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: readonly Buffer[];
}

/** At most one of `onEnd` and `onError` is called, and nothing after either or after `abort`. */
export interface UpstreamHandler {
  onHeaders(status: number, headers: IncomingHttpHeaders): void;
  /** @returns false to pause the response until `resume`. */
  onData(chunk: Buffer): boolean;
  onEnd(): void;
  /** The response is missing or incomplete. */
  onError(error: DomainError): void;
}

export interface UpstreamCall {
  resume(): void;
  /** Cancels the request immediately, even before the response headers. */
  abort(): void;
}

export interface UpstreamTransport {
  /** Never throws or calls back synchronously. */
  dispatch(request: UpstreamRequest, handler: UpstreamHandler): UpstreamCall;
}
