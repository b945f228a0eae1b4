import type { IncomingHttpHeaders } from "node:http";
import type { PooledCall } from "@fairlead/wire/http1/connection-pool";
import type { Http1Connection, RenderedRequest } from "@fairlead/wire/http1/http1-connection";
import type { TunnelCall, TunnelCallHandler } from "../tunnel/tunnel-call.ts";
import { answerFault } from "./fault-answer.ts";
import { answerHeaders } from "./gateway-headers.ts";

/** One request on its way to a workload and the answer on its way back, each at the pace of its reader. */
export class Forward implements PooledCall {
  readonly #call: TunnelCall;
  readonly #request: RenderedRequest;
  #caller: CallerSide | undefined;
  /** Bytes of the answer's body that are still to come, where its length was said. */
  #left = Number.NaN;
  /** With these its body is whole: they go out with the end. */
  #last: Buffer | undefined;

  constructor(call: TunnelCall, request: RenderedRequest) {
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
      // It holds a header that the tunnel cannot carry.
      this.#caller?.onClose();
      answerFault(this.#call, "upstream_failed");
      return;
    }
    this.#left = Number(headers["content-length"] ?? Number.NaN);
  }

  onData(chunk: Buffer): boolean {
    this.#left -= chunk.length;
    if (this.#left !== 0) return this.#call.write(chunk);
    // Not yet the end: the call may close at once with it, and the connection would not be free yet.
    this.#last = chunk;
    return true;
  }

  onEnd(): void {
    this.#over();
    this.#call.end(this.#last);
  }

  onLost(cause: Error): void {
    this.#over();
    if (this.#call.isAnswered) this.#call.break(new Error("the engine broke off", { cause }));
    else answerFault(this.#call, "upstream_failed");
  }

  onDrain(): void {
    this.#call.resume();
  }

  /** Nobody takes the rest of the request's body any more, but the call must be able to end. */
  #over(): void {
    if (this.#caller?.leave() === false) this.#call.resume();
  }
}

/** What the caller says and takes. Knows the connection no longer than it is the call's. */
class CallerSide implements TunnelCallHandler {
  #connection: Http1Connection | undefined;
  #isWhole = false;

  constructor(connection: Http1Connection) {
    this.#connection = connection;
  }

  /** @returns whether the caller has said all. */
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

  /** Also where the caller left before the answer's headers, or in the middle of its body. */
  onClose(): void {
    this.#connection?.abort();
    this.#connection = undefined;
  }
}
