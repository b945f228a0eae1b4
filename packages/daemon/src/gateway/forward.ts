import type { IncomingHttpHeaders } from "node:http";
import type { PooledCall } from "@fairlead/wire/http1/connection-pool";
import type { Http1Connection, RenderedRequest } from "@fairlead/wire/http1/http1-connection";
import type { IncomingCall, TunnelCallHandler } from "../tunnel/tunnel-call.ts";
import { answerFault } from "./fault-answer.ts";
import { answerHeaders } from "./gateway-headers.ts";

/** Streams one request to a workload and its response back, with backpressure in both directions. */
export class Forward implements PooledCall {
  readonly #call: IncomingCall;
  readonly #request: RenderedRequest;
  #caller: CallerSide | undefined;
  /** Remaining bytes of the response body, if its length is known. */
  #left = Number.NaN;
  /** The last bytes of the body, sent together with its end. */
  #last: Buffer | undefined;

  constructor(call: IncomingCall, request: RenderedRequest) {
    this.#call = call;
    this.#request = request;
  }

  onConnection(connection: Http1Connection): boolean {
    if (this.#call.isClosed) {
      connection.abort();
      return false;
    }
    this.#caller = new CallerSide(connection);
    connection.send(this.#request, this);
    this.#call.handle(this.#caller);
    return true;
  }

  onNotReached(cause: NodeJS.ErrnoException): void {
    answerFault(this.#call, cause.code === "ECONNREFUSED" ? "no_running_engine" : "upstream_failed");
  }

  onHeaders(status: number, headers: IncomingHttpHeaders): void {
    try {
      this.#call.respond(status, answerHeaders(headers));
    } catch {
      // A header cannot be sent through the tunnel.
      this.#caller?.onClose();
      answerFault(this.#call, "upstream_failed");
      return;
    }
    this.#left = Number(headers["content-length"] ?? Number.NaN);
  }

  onData(chunk: Buffer): boolean {
    this.#left -= chunk.length;
    if (this.#left !== 0) return this.#call.write(chunk);
    // Do not end the call yet: it may close immediately, before the connection is free.
    this.#last = chunk;
    return true;
  }

  onEnd(): void {
    this.#over();
    this.#call.end(this.#last);
  }

  onLost(cause: Error): void {
    this.#over();
    if (this.#call.isAnswered) this.#call.break(new Error("the engine closed the connection", { cause }));
    else answerFault(this.#call, "upstream_failed");
  }

  onDrain(): void {
    this.#call.resume();
  }

  /** Discards the rest of the request body, so that the call can end. */
  #over(): void {
    if (this.#caller?.leave() === false) this.#call.resume();
  }
}

/** The client side of a call. Drops its reference to the connection when the call releases it. */
class CallerSide implements TunnelCallHandler {
  #connection: Http1Connection | undefined;
  #isWhole = false;

  constructor(connection: Http1Connection) {
    this.#connection = connection;
  }

  /** @returns whether the request is complete. */
  leave(): boolean {
    this.#connection = undefined;
    return this.#isWhole;
  }

  onData(chunk: Buffer): boolean {
    return this.#connection?.write(chunk) ?? true;
  }

  onEnd(): void {
    this.#isWhole = true;
    this.#connection?.endBody();
  }

  onDrain(): void {
    this.#connection?.resume();
  }

  /** Also called if the client disconnects before or during the response. */
  onClose(): void {
    this.#connection?.abort();
    this.#connection = undefined;
  }
}
