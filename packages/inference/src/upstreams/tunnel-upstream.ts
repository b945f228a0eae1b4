import type { IncomingHttpHeaders } from "node:http";
import { TUNNEL_FAULT_HEADER } from "@fairlead/protocol/daemon-link";
import { DomainError } from "@fairlead/protocol/errors";
import type { TunnelCall, TunnelHandler, TunnelTransport } from "@fairlead/wire/tunnel-transport";
import type { EngineTarget } from "../ports/ports.ts";
import type { UpstreamCall, UpstreamHandler, UpstreamRequest, UpstreamTransport } from "./upstream.ts";

const ENGINE_RETRY_SECONDS = 5;
/** The base path of every engine's API. */
const BASE_PATH = "/v1";

type EngineName = Pick<EngineTarget, "workload" | "identifier">;

/** A node's engine, reached through the node's tunnel. */
export class TunnelUpstream implements UpstreamTransport {
  readonly #tunnel: TunnelTransport;
  readonly #engine: EngineName;

  constructor(tunnel: TunnelTransport, engine: EngineName) {
    this.#tunnel = tunnel;
    this.#engine = engine;
  }

  dispatch(request: UpstreamRequest, handler: UpstreamHandler): UpstreamCall {
    const { method, path, headers, body } = request;
    const { workload, identifier } = this.#engine;
    const call = new EngineCall(handler, identifier);
    call.start(this.#tunnel.open({ workload, method, path: BASE_PATH + path, headers, body }, call));
    return call;
  }
}

/** Distinguishes responses of the gateway from those of the engine, and both from a lost tunnel. */
class EngineCall implements TunnelHandler, UpstreamCall {
  readonly #handler: UpstreamHandler;
  readonly #node: string;
  #call: TunnelCall | undefined;

  constructor(handler: UpstreamHandler, node: string) {
    this.#handler = handler;
    this.#node = node;
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
    this.#handler.onError(fault === "no_running_engine" ? engineRestarts(this.#node) : engineFailed());
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

/** The daemon knows earlier than the server. */
function engineRestarts(node: string): DomainError {
  const message = `The engine of node \`${node}\` is being restarted.`;
  return new DomainError("no_running_engine", message, { retryAfterSeconds: ENGINE_RETRY_SECONDS });
}

function engineFailed(cause?: Error): DomainError {
  return new DomainError("upstream_failed", "the engine could not be reached or closed the connection too early", {
    cause,
  });
}
