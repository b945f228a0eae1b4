import type { IncomingHttpHeaders } from "node:http";

/** Interface between callers of a node's workloads and the transport to the node. */

export interface TunnelHead {
  /** The workload's `name` on the node. */
  readonly workload: string;
  readonly method: string;
  /** Path and query as sent to the workload. */
  readonly path: string;
  /** Lower-case names; no hop-by-hop headers. */
  readonly headers: Readonly<Record<string, string>>;
}

export interface TunnelRequest extends TunnelHead {
  /** Sent in pieces with backpressure. */
  readonly body: readonly Buffer[];
}

/** A request with a streamed body, or a WebSocket. */
export interface TunnelStreamRequest extends TunnelHead {
  readonly kind: "no-body" | "body" | "web-socket";
}

/** Raw callbacks: `onEnd` or `onError` at most once, and nothing after either or after `abort`. */
export interface TunnelHandler {
  onHeaders(status: number, headers: IncomingHttpHeaders): void;
  /** @returns false to pause the response until `resume`. */
  onData(chunk: Buffer): boolean;
  /** The response is complete. */
  onEnd(): void;
  /** The response is missing or incomplete. */
  onError(error: Error): void;
}

export interface TunnelStreamHandler extends TunnelHandler {
  /** Written bytes were sent; `write` may continue. */
  onDrain(): void;
}

export interface TunnelCall {
  resume(): void;
  /** Cancels the workload's request immediately, even before the response headers. */
  abort(): void;
}

export interface TunnelStreamCall extends TunnelCall {
  /** At most 64 KiB. @returns false when the caller should wait for `onDrain`. Does nothing after the call has ended. */
  write(chunk: Buffer): boolean;
  /** Ends the body. */
  end(): void;
}

export interface TunnelTransport {
  /** Never throws or calls back synchronously: a lost tunnel is reported by `onError`. */
  open(request: TunnelRequest, handler: TunnelHandler): TunnelCall;
}

export interface StreamTransport extends TunnelTransport {
  /** Like `open`, with a streamed body. */
  openStream(request: TunnelStreamRequest, handler: TunnelStreamHandler): TunnelStreamCall;
}
