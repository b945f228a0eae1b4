import type { IncomingHttpHeaders } from "node:http";
import { Readable } from "node:stream";
import type { TunnelCall, TunnelHandler, TunnelRequest, TunnelTransport } from "../tunnel/tunnel-transport.ts";

export interface LogHead {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
}

/** An answer of a daemon as a stream, at the pace of its reader; destroying it ends the daemon's work on it. */
export class NodeLogStream extends Readable implements TunnelHandler {
  /** Rejects where no answer begins. */
  readonly head: Promise<LogHead>;
  readonly #head = Promise.withResolvers<LogHead>();
  #call: TunnelCall | null = null;

  constructor() {
    super();
    this.head = this.#head.promise;
    // Whoever opened it may have left before.
    this.head.catch(() => undefined);
    // The daemon may break off before a reader is there, who finds the stream destroyed then.
    this.on("error", () => undefined);
  }

  start(daemon: TunnelTransport, request: TunnelRequest): void {
    this.#call = daemon.open(request, this);
  }

  onHeaders(status: number, headers: IncomingHttpHeaders): void {
    this.#head.resolve({ status, headers });
  }

  onData(chunk: Buffer): boolean {
    return this.push(chunk);
  }

  onEnd(): void {
    this.push(null);
  }

  onError(error: Error): void {
    this.#head.reject(error);
    this.destroy(error);
  }

  override _read(): void {
    this.#call?.resume();
  }

  override _destroy(error: Error | null, callback: (error: Error | null) => void): void {
    this.#call?.abort();
    this.#call = null;
    this.#head.reject(error ?? new Error("nobody reads any more"));
    callback(error);
  }
}
