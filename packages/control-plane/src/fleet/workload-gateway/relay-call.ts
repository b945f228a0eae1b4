import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { HeldResponse } from "@fairlead/hosting/held-response";
import { atEndOfTurn } from "@fairlead/wire/end-of-turn";
import type {
  StreamTransport,
  TunnelHead,
  TunnelStreamCall,
  TunnelStreamHandler,
} from "@fairlead/wire/tunnel-transport";
import { gatewayFault, workloadBrokeOff } from "./relay-faults.ts";
import { outwardHeaders } from "./relay-headers.ts";

export interface RelayExchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly nodeId: string;
  readonly requestId: string;
  readonly publicPath: string;
  /** Answers in our own name. */
  readonly refuse: (error: unknown) => void;
}

/** One HTTP request through the relay: both bodies stream, each at the pace of its reader. */
export class RelayCall implements TunnelStreamHandler {
  readonly #exchange: RelayExchange;
  readonly #held: HeldResponse;
  #call: TunnelStreamCall | undefined;
  #written = false;

  constructor(exchange: RelayExchange) {
    this.#exchange = exchange;
    this.#held = new HeldResponse(exchange.response);
  }

  start(tunnel: StreamTransport, head: TunnelHead): void {
    const { request, response } = this.#exchange;
    const withBody = hasBody(request.headers);
    const call = tunnel.openStream({ ...head, kind: withBody ? "body" : "no-body" }, this);
    this.#call = call;
    // Also when all is well; then there is nothing left to abort.
    response.once("close", () => this.#leave());
    response.on("drain", () => call.resume());
    if (!withBody) return;
    request.on("data", (chunk: Buffer) => {
      if (this.#call?.write(chunk) === false) request.pause();
    });
    request.once("end", () => this.#call?.end());
  }

  /** The right to this call is gone. */
  cut(): void {
    this.#leave();
    this.#exchange.response.destroy();
  }

  onHeaders(status: number, headers: IncomingHttpHeaders): void {
    const { response, refuse } = this.#exchange;
    const fault = gatewayFault(headers);
    if (fault !== null) {
      this.#leave();
      refuse(fault);
      return;
    }
    try {
      response.writeHead(status, outwardHeaders(headers, this.#exchange));
    } catch (error) {
      // A guest's headers must not bring the server down.
      this.#leave();
      refuse(workloadBrokeOff(error));
      return;
    }
    // With the first bytes of the body where they are there already; a stream's head must not wait for its first event.
    atEndOfTurn(() => {
      if (!this.#written && !response.writableEnded && !response.destroyed) response.flushHeaders();
    });
  }

  onData(chunk: Buffer): boolean {
    this.#written = true;
    this.#held.hold();
    return this.#exchange.response.write(chunk);
  }

  onDrain(): void {
    this.#exchange.request.resume();
  }

  onEnd(): void {
    this.#finish();
    this.#held.endWith(() => this.#exchange.response.end());
  }

  onError(error: Error): void {
    const { response, refuse } = this.#exchange;
    this.#finish();
    // What was begun cannot be taken back: cut, it does not look whole.
    if (response.headersSent) this.#held.break();
    else refuse(workloadBrokeOff(error));
  }

  #leave(): void {
    this.#call?.abort();
    this.#finish();
  }

  /** What the caller still sends is of no use to anyone. */
  #finish(): void {
    this.#call = undefined;
    this.#exchange.request.resume();
  }
}

function hasBody(headers: IncomingHttpHeaders): boolean {
  const length = headers["content-length"];
  return headers["transfer-encoding"] !== undefined || (length !== undefined && length !== "0");
}
