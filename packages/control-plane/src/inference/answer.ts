import type { ServerResponse } from "node:http";
import type { KeptAnswer } from "../answers/kept-answer.ts";
import { errorAnswer } from "../http/error-response.ts";

/** Answers of the inference host's own. */

export interface Exchange {
  readonly response: ServerResponse;
  readonly requestId: string;
  /** What the answer bears, whatever it will be. */
  readonly headers: Record<string, string>;
}

export function sendJson(exchange: Exchange, value: unknown): void {
  const body = JSON.stringify(value);
  exchange.response.writeHead(200, {
    "content-type": "application/json; charset=utf-8",
    "content-length": Buffer.byteLength(body),
    "x-request-id": exchange.requestId,
    ...exchange.headers,
  });
  exchange.response.end(body);
}

/** An answer that was given before. */
export function sendKept({ response, requestId, headers }: Exchange, { status, headers: own, body }: KeptAnswer): void {
  response.writeHead(status, { ...own, ...headers, "content-length": body.length, "x-request-id": requestId });
  response.end(body);
}

/** @param extra headers beside those that every error carries. */
export function sendError(exchange: Exchange, error: unknown, extra: Readonly<Record<string, string>> = {}): void {
  const { response, requestId, headers } = exchange;
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  const answer = errorAnswer(error, requestId);
  response.writeHead(answer.status, {
    ...answer.headers,
    ...headers,
    ...extra,
    "content-length": Buffer.byteLength(answer.body),
  });
  response.end(answer.body);
}
