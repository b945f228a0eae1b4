import type { IncomingHttpHeaders } from "node:http";
import { DomainError } from "@fairlead/protocol/errors";
import type { ConnectionPool, PooledCall } from "@fairlead/wire/http1/connection-pool";
import type { Http1Connection, RenderedRequest } from "@fairlead/wire/http1/http1-connection";
import { headerLines, requestLine } from "@fairlead/wire/http1/http1-request";
import { NotReached } from "../routing/upstream-faults.ts";
import { connectionFailure } from "./connection-failure.ts";
import type { UpstreamCall, UpstreamHandler, UpstreamRequest, UpstreamTransport } from "./upstream.ts";

export interface HttpUpstreamOptions {
  /** Called for every request, because the pool can be replaced. */
  readonly pool: () => ConnectionPool;
  /** Base URL of requests, such as `https://api.example.com/v1`. Its query is added to every request. */
  readonly baseUrl: URL;
  /** Lower-case names, including the credential. They override the call's own. */
  readonly headers: Readonly<Record<string, string>>;
}

/** A provider's API over HTTP/1.1. Redirects are ordinary responses and never followed. */
export class HttpUpstream implements UpstreamTransport {
  readonly #pool: () => ConnectionPool;
  readonly #base: { readonly path: string; readonly query: string };
  readonly #own: Readonly<Record<string, string>>;
  readonly #ownNames: ReadonlySet<string>;

  constructor({ pool, baseUrl, headers }: HttpUpstreamOptions) {
    this.#pool = pool;
    this.#base = { path: baseUrl.pathname.replace(/\/$/, ""), query: baseUrl.search };
    this.#own = { host: baseUrl.host, connection: "keep-alive", ...headers };
    this.#ownNames = new Set(Object.keys(this.#own));
  }

  dispatch(request: UpstreamRequest, handler: UpstreamHandler): UpstreamCall {
    const call = new HttpCall(handler);
    call.start(() => this.#pool().run(call.toSend(this.#render(request))));
    return call;
  }

  /** @throws HeaderRefused */
  #render({ method, path, headers, body }: UpstreamRequest): RenderedRequest {
    const line = requestLine(method, this.#base.path + path + this.#base.query);
    const head = line + headerLines(this.#own) + headerLines(headers, this.#ownNames);
    return { method, head: `${head}\r\n`, body };
  }
}

class HttpCall implements UpstreamCall, PooledCall {
  /** Undefined once the call has ended. */
  #handler: UpstreamHandler | undefined;
  #request: RenderedRequest | undefined;
  #connection: Http1Connection | undefined;
  #dispatching = false;

  constructor(handler: UpstreamHandler) {
    this.#handler = handler;
  }

  start(run: () => void): void {
    this.#dispatching = true;
    try {
      run();
    } catch (error) {
      this.onNotReached(error instanceof Error ? error : new Error(String(error)));
    }
    this.#dispatching = false;
  }

  toSend(request: RenderedRequest): this {
    this.#request = request;
    return this;
  }

  resume(): void {
    this.#connection?.resume();
  }

  abort(): void {
    this.#over();
    this.#connection?.abort();
    this.#connection = undefined;
  }

  onConnection(connection: Http1Connection): boolean {
    const request = this.#request;
    if (request === undefined) return false;
    this.#connection = connection;
    connection.send(request, this);
    return true;
  }

  onHeaders(status: number, headers: IncomingHttpHeaders): void {
    this.#handler?.onHeaders(status, headers);
  }

  onData(chunk: Buffer): boolean {
    return this.#handler?.onData(chunk) ?? true;
  }

  onEnd(): void {
    this.#connection = undefined;
    this.#over()?.onEnd();
  }

  onLost(cause: Error): void {
    this.#connection = undefined;
    this.#over()?.onError(brokeOff(cause));
  }

  onNotReached(cause: Error): void {
    const tell = (): void => this.#over()?.onError(notReached(cause));
    // Never call back before `dispatch` returns.
    if (this.#dispatching) setImmediate(tell);
    else tell();
  }

  #over(): UpstreamHandler | undefined {
    const handler = this.#handler;
    this.#handler = undefined;
    this.#request = undefined;
    return handler;
  }
}

function notReached(cause: Error): DomainError {
  return new NotReached("upstream_failed", connectionFailure(cause, "could not be reached"), { cause });
}

function brokeOff(cause: Error): DomainError {
  return new DomainError("upstream_failed", connectionFailure(cause, "closed the connection too early"), { cause });
}
