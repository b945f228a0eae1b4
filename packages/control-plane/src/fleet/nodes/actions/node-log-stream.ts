import type { IncomingHttpHeaders } from "node:http";
import { Readable } from "node:stream";
import type { TunnelCall, TunnelHandler, TunnelRequest, TunnelTransport } from "@fairlead/wire/tunnel-transport";

export interface LogHead {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
}

/** A daemon's response as a stream with backpressure; destroying it stops the daemon's work. */
export class NodeLogStream extends Readable implements TunnelHandler {
  /** Rejects if no response starts. */
  readonly head: Promise<LogHead>;
  readonly #head = Promise.withResolvers<LogHead>();
  #call: TunnelCall | null = null;

  constructor() {
    super();
    this.head = this.#head.promise;
    // The reader may already have disconnected.
    this.head.catch(() => undefined);
    // The daemon may fail before a reader exists, who then finds the stream destroyed.
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
    this.#head.reject(error ?? new Error("the reader disconnected"));
    callback(error);
  }
}
