import type { IncomingHttpHeaders } from "node:http";

/** The seam between those who call a node's workloads and the way the bytes get there. */

export interface TunnelHead {
  /** The workload's `name` on the node. */
  readonly workload: string;
  readonly method: string;
  /** Path and query, as the workload shall see them. */
  readonly path: string;
  /** Lower-case names; no hop-by-hop headers. */
  readonly headers: Readonly<Record<string, string>>;
}

export interface TunnelRequest extends TunnelHead {
  /** Sent piece by piece, as fast as the node takes it. */
  readonly body: readonly Buffer[];
}

/** A request whose body is written as it comes, or a WebSocket (RFC 8441), which is nothing but two such streams. */
export interface TunnelStreamRequest extends TunnelHead {
  readonly kind: "no-body" | "body" | "web-socket";
}

/** Raw callbacks, at most one of `onEnd` and `onError`, and nothing after either or after `abort`. */
export interface TunnelHandler {
  onHeaders(status: number, headers: IncomingHttpHeaders): void;
  /** @returns false to pause the answer until `resume`. */
  onData(chunk: Buffer): boolean;
  /** The answer is whole. */
  onEnd(): void;
  /** The answer is missing or cut: whatever came so far is not all. */
  onError(error: Error): void;
}

export interface TunnelStreamHandler extends TunnelHandler {
  /** What was written has left: `write` may go on. */
  onDrain(): void;
}

export interface TunnelCall {
  resume(): void;
  /** Ends the workload's work on this call at once, before the answer's headers too. */
  abort(): void;
}

export interface TunnelStreamCall extends TunnelCall {
  /** At most 64 KiB. @returns false when it is time to wait for `onDrain`. After the call's end it does nothing. */
  write(chunk: Buffer): boolean;
  /** The body is whole. */
  end(): void;
}

export interface TunnelTransport {
  /** Never throws and never calls back before it returns: a lost tunnel is told by `onError`. */
  open(request: TunnelRequest, handler: TunnelHandler): TunnelCall;
}

export interface StreamTransport extends TunnelTransport {
  /** The same with a body that comes piece by piece. A daemon that is too old for WebSockets answers them by `onError`. */
  openStream(request: TunnelStreamRequest, handler: TunnelStreamHandler): TunnelStreamCall;
}

/** One connection of a node's daemon. */
export interface Tunnel extends StreamTransport {
  /** Whether a new call has a chance. */
  readonly usable: boolean;
  /** Resolves when no call on a workload runs. */
  idle(): Promise<void>;
  /** Takes no new calls; the tunnel closes after the last one, and then this resolves. */
  drain(): Promise<void>;
  /** Ends every call as failed, at once. */
  destroy(reason: Error): void;
}

/** The node's daemon does not speak this kind of call. */
export class TunnelCannot extends Error {
  override readonly name = "TunnelCannot";
}
