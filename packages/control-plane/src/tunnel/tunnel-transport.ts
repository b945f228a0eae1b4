import type { IncomingHttpHeaders } from "node:http";

/** The seam between those who call a node's workloads and the way the bytes get there. */

export interface TunnelRequest {
  /** The workload's `name` on the node. */
  readonly workload: string;
  readonly method: string;
  /** Path and query, as the workload shall see them. */
  readonly path: string;
  /** Lower-case names; no hop-by-hop headers. */
  readonly headers: Readonly<Record<string, string>>;
  /** Sent piece by piece, as fast as the node takes it. */
  readonly body: readonly Buffer[];
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

export interface TunnelCall {
  resume(): void;
  /** Ends the workload's work on this call at once, before the answer's headers too. */
  abort(): void;
}

export interface TunnelTransport {
  /** Never throws and never calls back before it returns: a lost tunnel is told by `onError`. */
  open(request: TunnelRequest, handler: TunnelHandler): TunnelCall;
}
