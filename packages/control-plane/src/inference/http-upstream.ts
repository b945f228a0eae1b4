import type { IncomingHttpHeaders } from "node:http";
import { DomainError } from "@fairlead/protocol/errors";
import type { ConnectionPool, PooledCall } from "@fairlead/wire/http1/connection-pool";
import type { Http1Connection, RenderedRequest } from "@fairlead/wire/http1/http1-connection";
import { headerLines, requestLine } from "@fairlead/wire/http1/http1-request";
import { PrivateAddressError } from "./guarded-connect.ts";
import type { UpstreamCall, UpstreamHandler, UpstreamRequest, UpstreamTransport } from "./upstream.ts";
import { NotReached } from "./upstream-faults.ts";

export interface HttpUpstreamOptions {
  /** Asked for every call: its connections may be replaced in between. */
  readonly pool: () => ConnectionPool;
  /** What requests are sent below: `https://api.example.com/v1`. A query in it goes with every request. */
  readonly baseUrl: URL;
  /** Lower-case names; the credential among them. They win over the call's own. */
  readonly headers: Readonly<Record<string, string>>;
}

/** A provider's API over HTTP/1.1. Redirects are answers like any other: none is followed. */
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
  /** Undefined once the call is over. */
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
    // Nobody is called back before the call is in hand.
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
  const message =
    cause instanceof PrivateAddressError
      ? "The provider's address is not a public one, so nothing is sent there."
      : "The provider could not be reached.";
  return new NotReached("upstream_failed", message, { cause });
}

function brokeOff(cause: Error): DomainError {
  return new DomainError("upstream_failed", "The provider broke off.", { cause });
}
