import { type IncomingHttpHeaders, validateHeaderName, validateHeaderValue } from "node:http";
import { TUNNEL_TOKEN_HEADER } from "@fairlead/protocol/daemon-link";
import { HeadReader, HeadRefused, type RequestHead, requestHead, writeHead } from "@fairlead/wire/tunnel-heads";
import type { YamuxStream, YamuxStreamHandler } from "@fairlead/wire/yamux/stream";
import type { IncomingCall, IncomingCallHandler, IncomingRequest, TunnelCallHandler } from "./tunnel-call.ts";

/** Large enough for uploads over a high-latency connection. */
const REQUEST_WINDOW_BYTES = 1024 * 1024;

/** Reads a request's head from a stream and passes it to the handler. */
export function takeYamuxCall(stream: YamuxStream, answer: IncomingCallHandler): void {
  stream.handle(new YamuxCall(stream, answer), REQUEST_WINDOW_BYTES);
}

class YamuxCall implements IncomingCall, YamuxStreamHandler {
  readonly #stream: YamuxStream;
  readonly #answer: IncomingCallHandler;
  #head: HeadReader<RequestHead> | null = new HeadReader(requestHead);
  #request: IncomingRequest | undefined;
  #handler: TunnelCallHandler | undefined;
  /** Body bytes received before the handler is ready. */
  #first: Buffer | null = null;
  #isBodyWhole = false;
  /** The handler is ready for the body. */
  #isRead = false;
  #isBroken = false;
  readonly #whenClosed: (() => void)[] = [];
  isAnswered = false;

  constructor(stream: YamuxStream, answer: IncomingCallHandler) {
    this.#stream = stream;
    this.#answer = answer;
  }

  get request(): IncomingRequest {
    if (this.#request === undefined) throw new Error("the request's head has not arrived");
    return this.#request;
  }

  get isClosed(): boolean {
    return this.#isBroken || this.#stream.isClosed;
  }

  handle(handler: TunnelCallHandler): void {
    if (this.isClosed) {
      setImmediate(() => handler.onClose());
      return;
    }
    this.#handler = handler;
    this.#isRead = this.#first === null || handler.onData(this.#first);
    this.#first = null;
    if (this.#isBodyWhole) handler.onEnd();
    else if (this.#isRead) this.#stream.resume();
  }

  onceClosed(tell: () => void): void {
    this.#whenClosed.push(tell);
  }

  respond(status: number, headers: IncomingHttpHeaders): void {
    for (const name in headers) {
      validateHeaderName(name);
      const value = headers[name];
      if (typeof value === "string") validateHeaderValue(name, value);
      else for (const one of value ?? []) validateHeaderValue(name, one);
    }
    const head = writeHead({ status, headers });
    if (this.isClosed) return;
    this.isAnswered = true;
    this.#stream.write(head);
  }

  write(chunk: Buffer): boolean {
    return this.#isBroken || this.#stream.write(chunk);
  }

  end(last?: Buffer): void {
    if (!this.#isBroken) this.#stream.end(last);
  }

  resume(): void {
    this.#stream.resume();
  }

  break(): void {
    this.#isBroken = true;
    this.#stream.resetWhenSent();
  }

  onData(chunk: Buffer): boolean {
    if (this.#head === null) return this.#handler?.onData(chunk) ?? true;
    try {
      const read = this.#head.push(chunk);
      if (read === null) return true;
      this.#begin(read.head, read.rest);
      return this.#isRead;
    } catch (error) {
      if (!(error instanceof HeadRefused)) throw error;
      this.#stream.reset();
      return true;
    }
  }

  onEnd(): void {
    this.#isBodyWhole = true;
    this.#handler?.onEnd();
  }

  onDrain(): void {
    this.#handler?.onDrain();
  }

  onClose(): void {
    const handler = this.#handler;
    this.#handler = undefined;
    this.#first = null;
    handler?.onClose();
    for (const tell of this.#whenClosed.splice(0)) tell();
  }

  #begin({ workload, kind, method, path, headers }: RequestHead, rest: Buffer): void {
    this.#head = null;
    if (rest.length > 0) this.#first = rest;
    const { [TUNNEL_TOKEN_HEADER]: token, ...others } = headers;
    this.#request = { workload, token: token?.toString(), kind, method, path, headers: others };
    this.#answer(this);
  }
}
