import type { OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { HeldResponse } from "@fairlead/hosting/held-response";
import type { DomainError } from "@fairlead/protocol/errors";
import type { AnswerHead, AnswerSink, SinkListener } from "../calls/answer-sink.ts";
import { RATE_LIMIT_PREFIX } from "../relay/answer-headers.ts";
import { type Exchange, sendError } from "./answer.ts";
import { AnswerBody } from "./answer-body.ts";

/** Writes a call's response to HTTP. */
export class HttpSink implements AnswerSink {
  readonly readsEvents = false;
  readonly #exchange: Exchange;
  readonly #response: ServerResponse;
  readonly #held: HeldResponse;
  /** Set once the head is written. */
  #body: AnswerBody | undefined;

  constructor(exchange: Exchange) {
    this.#exchange = exchange;
    this.#response = exchange.response;
    this.#held = new HeldResponse(exchange.response);
  }

  get connection(): Duplex | null {
    return this.#response.socket;
  }

  listen(listener: SinkListener): void {
    const response = this.#response;
    response.on("drain", () => listener.onDrain());
    response.on("error", () => undefined);
    if (response.destroyed) listener.onClosed(false);
    else response.once("close", () => listener.onClosed(response.writableFinished));
  }

  carry(headers: Readonly<Record<string, string>>): void {
    Object.assign(this.#exchange.headers, headers);
  }

  begin({ status, headers }: AnswerHead): void {
    const { headers: carried, requestId } = this.#exchange;
    this.#response.writeHead(status, { ...beside(headers, carried), ...carried, "x-request-id": requestId });
    this.#body = new AnswerBody(this.#response);
  }

  write(bytes: Buffer): boolean {
    this.#held.hold();
    return this.#body?.write(bytes) !== false;
  }

  end(): void {
    this.#held.endWith(() => this.#body?.end());
  }

  refuse(error: DomainError, headers: Readonly<Record<string, string>>): void {
    sendError(this.#exchange, error, headers);
  }

  break(): void {
    this.#held.break();
  }
}

/** Drops an upstream's limit headers if ours are present, because a client could not tell them apart. */
function beside(headers: OutgoingHttpHeaders, carried: Readonly<Record<string, string>>): OutgoingHttpHeaders {
  if (!hasLimits(carried) || !hasLimits(headers)) return headers;
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !name.startsWith(RATE_LIMIT_PREFIX)));
}

function hasLimits(headers: OutgoingHttpHeaders): boolean {
  for (const name in headers) if (name.startsWith(RATE_LIMIT_PREFIX)) return true;
  return false;
}
