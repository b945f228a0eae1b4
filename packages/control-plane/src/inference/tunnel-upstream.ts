import type { IncomingHttpHeaders } from "node:http";
import { TUNNEL_FAULT_HEADER } from "@fairlead/protocol/daemon-link";
import { DomainError } from "@fairlead/protocol/errors";
import type { TunnelCall, TunnelHandler, TunnelTransport } from "../tunnel/tunnel-transport.ts";
import type { UpstreamCall, UpstreamHandler, UpstreamRequest, UpstreamTransport } from "./upstream.ts";

const ENGINE_RETRY_SECONDS = 5;
/** Where every engine has its API. */
const BASE_PATH = "/v1";

/** A node's engine, reached through the node's tunnel. */
export class TunnelUpstream implements UpstreamTransport {
  readonly #tunnel: TunnelTransport;
  readonly #workload: string;

  constructor(tunnel: TunnelTransport, workload: string) {
    this.#tunnel = tunnel;
    this.#workload = workload;
  }

  dispatch(request: UpstreamRequest, handler: UpstreamHandler): UpstreamCall {
    const { method, path, headers, body } = request;
    const call = new EngineCall(handler);
    call.start(this.#tunnel.open({ workload: this.#workload, method, path: BASE_PATH + path, headers, body }, call));
    return call;
  }
}

/** Tells the gateway's own answers from the engine's, and a lost tunnel from both. */
class EngineCall implements TunnelHandler, UpstreamCall {
  readonly #handler: UpstreamHandler;
  #call: TunnelCall | undefined;

  constructor(handler: UpstreamHandler) {
    this.#handler = handler;
  }

  start(call: TunnelCall): void {
    this.#call = call;
  }

  resume(): void {
    this.#call?.resume();
  }

  abort(): void {
    this.#call?.abort();
  }

  onHeaders(status: number, headers: IncomingHttpHeaders): void {
    const fault = headers[TUNNEL_FAULT_HEADER];
    if (fault === undefined) {
      this.#handler.onHeaders(status, headers);
      return;
    }
    this.abort();
    this.#handler.onError(fault === "no_running_engine" ? noRunningEngine() : engineFailed());
  }

  onData(chunk: Buffer): boolean {
    return this.#handler.onData(chunk);
  }

  onEnd(): void {
    this.#handler.onEnd();
  }

  onError(cause: Error): void {
    this.#handler.onError(engineFailed(cause));
  }
}

export function noRunningEngine(): DomainError {
  const message = "The node is known, but its engine is not running just now. Try again shortly.";
  return new DomainError("no_running_engine", message, { retryAfterSeconds: ENGINE_RETRY_SECONDS });
}

function engineFailed(cause?: Error): DomainError {
  return new DomainError("upstream_failed", "The node's engine broke off or could not be reached.", { cause });
}
