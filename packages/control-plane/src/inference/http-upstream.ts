import type { IncomingHttpHeaders } from "node:http";
import { DomainError } from "@fairlead/protocol/errors";
import type { Dispatcher } from "undici";
import { PrivateAddressError } from "./guarded-connect.ts";
import type { UpstreamCall, UpstreamHandler, UpstreamRequest, UpstreamTransport } from "./upstream.ts";
import { NotReached } from "./upstream-faults.ts";

export interface HttpUpstreamOptions {
  /** Asked for every call: its connections may be replaced in between. */
  readonly dispatcher: () => Dispatcher;
  /** What requests are sent below: `https://api.example.com/v1`. A query in it goes with every request. */
  readonly baseUrl: URL;
  /** Lower-case names; the credential among them. They win over the call's own. */
  readonly headers: Readonly<Record<string, string>>;
}

/** A provider's API over HTTP/1.1. Redirects are answers like any other: none is followed. */
export class HttpUpstream implements UpstreamTransport {
  readonly #options: HttpUpstreamOptions;

  constructor(options: HttpUpstreamOptions) {
    this.#options = options;
  }

  dispatch({ method, path, headers, body }: UpstreamRequest, handler: UpstreamHandler): UpstreamCall {
    const { dispatcher, baseUrl, headers: own } = this.#options;
    const call = new HttpCall(handler);
    call.start(dispatcher(), {
      method,
      origin: baseUrl.origin,
      path: baseUrl.pathname.replace(/\/$/, "") + path + baseUrl.search,
      headers: { ...headers, ...own },
      body: body.length === 1 ? body[0] : body,
    } as Dispatcher.DispatchOptions);
    return call;
  }
}

class HttpCall implements UpstreamCall, Dispatcher.DispatchHandler {
  /** Undefined once the call is over. */
  #handler: UpstreamHandler | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #dispatching = false;
  /** A connection was there, and some of the request may have gone out on it. */
  #sent = false;

  constructor(handler: UpstreamHandler) {
    this.#handler = handler;
  }

  start(dispatcher: Dispatcher, options: Dispatcher.DispatchOptions): void {
    this.#dispatching = true;
    dispatcher.dispatch(options, this);
    this.#dispatching = false;
  }

  resume(): void {
    this.#controller?.resume();
  }

  abort(): void {
    this.#handler = undefined;
    this.#controller?.abort(new Error("the call was aborted"));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#sent = true;
    // Aborted while it waited for its connection.
    if (this.#handler === undefined) controller.abort(new Error("the call was aborted"));
    else this.#controller = controller;
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    // Informational ones come before the answer.
    if (status >= 200) this.#handler?.onHeaders(status, headers);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#handler?.onData(chunk) === false) controller.pause();
  }

  onResponseEnd(): void {
    this.#over()?.onEnd();
  }

  onResponseError(_controller: Dispatcher.DispatchController, cause: Error): void {
    // Nobody is called back before the call is in hand.
    if (this.#dispatching) setImmediate(() => this.#fail(cause));
    else this.#fail(cause);
  }

  #fail(cause: Error): void {
    this.#over()?.onError(this.#sent ? brokeOff(cause) : notReached(cause));
  }

  #over(): UpstreamHandler | undefined {
    const handler = this.#handler;
    this.#handler = undefined;
    this.#controller = undefined;
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
