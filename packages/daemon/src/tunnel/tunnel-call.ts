import type { IncomingHttpHeaders } from "node:http";

/** Interface between the tunnel and its request handlers. */

export interface IncomingRequest {
  /** The workload's `name`, or a service of the daemon. */
  readonly workload: string;
  /** The workload-connect token of a relayed request; undefined for inference requests. */
  readonly token: string | undefined;
  readonly kind: "no-body" | "body" | "web-socket";
  readonly method: string;
  /** Path and query for the workload. */
  readonly path: string;
  /** Lower-case names, without the tunnel's own; values in latin1. */
  readonly headers: IncomingHttpHeaders;
}

export interface TunnelCallHandler {
  /** @returns false to pause the request's body until `resume`. */
  onData(chunk: Buffer): boolean;
  /** The request body is complete, or there is none. */
  onEnd(): void;
  /** Buffers are empty: `write` may continue. */
  onDrain(): void;
  /** Last event: the call is complete, aborted, or its client or tunnel is gone. */
  onClose(): void;
}

/** One request and its response. */
export interface IncomingCall {
  readonly request: IncomingRequest;
  /** The call has ended; a response would be discarded. */
  readonly isClosed: boolean;
  readonly isAnswered: boolean;
  /** Call once, now or later; the body is not read before. If the call is already closed, `onClose` follows asynchronously. */
  handle(handler: TunnelCallHandler): void;
  /** Called in addition to the handler's `onClose`, and without a handler too. */
  onceClosed(tell: () => void): void;
  /** @throws if a header cannot be sent; nothing is sent then. */
  respond(status: number, headers: IncomingHttpHeaders): void;
  /** Requires `respond`. @returns false to wait for `onDrain`. Does nothing after the end. */
  write(chunk: Buffer): boolean;
  /** Completes the response. @param last sent together with the end */
  end(last?: Buffer): void;
  /** Resumes the request body, which is discarded without a handler. */
  resume(): void;
  /** Delivers what was written, then signals a cut-off response. Does nothing after `end`. */
  break(cause: Error): void;
}

/** Handles a request. */
export type IncomingCallHandler = (call: IncomingCall) => void;
