import type { ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { DomainError } from "@fairlead/protocol/errors";
import { type Exchange, sendError } from "./answer.ts";
import { AnswerBody } from "./answer-body.ts";
import type { AnswerHead, AnswerSink, SinkListener } from "./answer-sink.ts";

/** The answer as an HTTP response. */
export class HttpSink implements AnswerSink {
  readonly #exchange: Exchange;
  readonly #response: ServerResponse;
  /** From the answer's head on. */
  #body: AnswerBody | undefined;

  constructor(exchange: Exchange) {
    this.#exchange = exchange;
    this.#response = exchange.response;
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

  begin({ status, headers }: AnswerHead): void {
    this.#response.writeHead(status, { ...headers, "x-request-id": this.#exchange.requestId });
    this.#body = new AnswerBody(this.#response);
  }

  write(bytes: Buffer): boolean {
    return this.#body?.write(bytes) !== false;
  }

  end(): void {
    this.#body?.end();
  }

  refuse(error: DomainError, headers: Readonly<Record<string, string>>): void {
    sendError(this.#exchange, error, headers);
  }

  break(): void {
    this.#response.destroy();
  }
}
