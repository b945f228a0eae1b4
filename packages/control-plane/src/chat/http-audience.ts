import type { OutgoingHttpHeaders, ServerResponse } from "node:http";
import { AnswerBody } from "../inference/answer-body.ts";
import type { TurnCaller } from "./turn-call.ts";

export interface HttpAudienceOptions {
  readonly response: ServerResponse;
  readonly streams: boolean;
  /** Sets headers of the answer, whatever it will be. */
  readonly setHeaders: (headers: Readonly<Record<string, string>>) => void;
  /** Takes the response out of the framework's hands. @returns the headers that were set. */
  readonly takeOver: () => OutgoingHttpHeaders;
}

/** The caller of a turn at the other end of a connection. */
export class HttpAudience implements TurnCaller {
  readonly streams: boolean;
  readonly gone: AbortSignal;
  readonly #options: HttpAudienceOptions;
  /** From the answer's head on. */
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
