import type { IncomingHttpHeaders } from "node:http";

/** The seam between the tunnel's protocols and those who answer what comes through it. */

export interface TunnelRequest {
  /** The workload's `name`, or a service of the daemon. */
  readonly workload: string;
  /** The workload-connect token of a relayed request; undefined for one of the inference host. */
  readonly token: string | undefined;
  readonly kind: "no-body" | "body" | "web-socket";
  readonly method: string;
  /** Path and query, as the workload shall see them. */
  readonly path: string;
  /** Lower-case names, none of them ours or of HTTP/2's own; each character of a value is one byte of the caller's. */
  readonly headers: IncomingHttpHeaders;
}

export interface TunnelCallHandler {
  /** @returns false to pause the request's body until `resume`. */
  onData(chunk: Buffer): boolean;
  /** The request's body is whole, or there is none. */
  onEnd(): void;
  /** What was written has left: `write` may go on. */
  onDrain(): void;
  /** Nothing comes after it: both bodies are whole, or the caller or the tunnel is gone, or the call was broken off. */
  onClose(): void;
}

/** One request and its answer on the way back. */
export interface TunnelCall {
  readonly request: TunnelRequest;
  /** Nothing that is answered now would be heard. */
  readonly isClosed: boolean;
  readonly isAnswered: boolean;
  /** To be called once, at once or later: nothing of the body is read before. A call that is closed by then tells so a little later. */
  handle(handler: TunnelCallHandler): void;
  /** Told beside the handler's `onClose`, also of a call that nobody handles. */
  onceClosed(tell: () => void): void;
  /** @throws where a header cannot be sent, with nothing sent. */
  respond(status: number, headers: IncomingHttpHeaders): void;
  /** After `respond`. @returns false when it is time to wait for `onDrain`. After the call's end it does nothing. */
  write(chunk: Buffer): boolean;
  /** The answer is whole. @param last goes out together with the end */
  end(last?: Buffer): void;
  /** Goes on with the request's body. That of a call which nobody handles is thrown away. */
  resume(): void;
  /** What was written is still delivered; then the caller is told that the answer is cut. After `end` it does nothing. */
  break(cause: Error): void;
}

/** Answers a request. */
export type TunnelHandler = (call: TunnelCall) => void;
