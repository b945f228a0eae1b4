import type { ServerResponse } from "node:http";
import { errorAnswer } from "@fairlead/hosting/errors/error-response";
import type { KeptAnswer } from "../ports/kept-answer.ts";

/** Responses that the inference host generates itself. */

export interface Exchange {
  readonly response: ServerResponse;
  readonly requestId: string;
  /** Headers of any response to this request. */
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

/** @param extra headers in addition to those of every response. */
export function sendEmpty({ response, requestId, headers }: Exchange, extra: Readonly<Record<string, string>>): void {
  response.writeHead(204, { "x-request-id": requestId, ...headers, ...extra });
  response.end();
}

/** Sends a stored response again. */
export function sendKept({ response, requestId, headers }: Exchange, { status, headers: own, body }: KeptAnswer): void {
  response.writeHead(status, { ...own, ...headers, "content-length": body.length, "x-request-id": requestId });
  response.end(body);
}

/** @param extra headers in addition to those of every error. */
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
