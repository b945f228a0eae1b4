import type { OutgoingHttpHeaders, ServerResponse } from "node:http";
import { AnswerBody } from "@fairlead/inference/host/answer-body";
import type { TurnCaller } from "./turn-call.ts";

export interface HttpAudienceOptions {
  readonly response: ServerResponse;
  readonly streams: boolean;
  /** Sets response headers, for any kind of response. */
  readonly setHeaders: (headers: Readonly<Record<string, string>>) => void;
  /** Detaches the response from the framework. @returns the headers set so far. */
  readonly takeOver: () => OutgoingHttpHeaders;
}

/** A turn's client on an HTTP connection. */
export class HttpAudience implements TurnCaller {
  readonly streams: boolean;
  readonly gone: AbortSignal;
  readonly #options: HttpAudienceOptions;
  /** Set once the response head was sent. */
  #body: AnswerBody | null = null;

  constructor(options: HttpAudienceOptions) {
    this.#options = options;
    this.streams = options.streams;
    const { response } = options;
    const leaving = new AbortController();
    this.gone = leaving.signal;
    response.on("error", () => undefined);
    if (response.destroyed) leaving.abort();
    else response.once("close", () => leaving.abort());
  }

  listen(onDrain: () => void): void {
    this.#options.response.on("drain", onDrain);
  }

  tellSession(sessionId: string): void {
    this.#options.setHeaders({ "service-session-id": sessionId });
  }

  carry(headers: Readonly<Record<string, string>>): void {
    this.#options.setHeaders(headers);
  }

  begin(headers: OutgoingHttpHeaders): void {
    const { response, takeOver } = this.#options;
    response.writeHead(200, { ...headers, ...takeOver() });
    this.#body = new AnswerBody(response);
  }

  write(bytes: Buffer): boolean {
    return this.#body?.write(bytes) !== false;
  }

  end(): void {
    this.#body?.end();
  }

  break(): void {
    this.#options.response.destroy();
  }
}
