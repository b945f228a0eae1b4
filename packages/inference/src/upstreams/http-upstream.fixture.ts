import type { IncomingHttpHeaders } from "node:http";
import type { DomainError } from "@fairlead/protocol/errors";
import type { HttpTarget } from "./http-upstreams.ts";
import type { UpstreamRequest, UpstreamTransport } from "./upstream.ts";

/** Calls to providers over HTTP, for tests. */

export const targetAt = (port: number, rest: Partial<HttpTarget> = {}): HttpTarget => ({
  id: "prv_1",
  baseUrl: `http://127.0.0.1:${port}/v1`,
  headers: { authorization: "Bearer theirs" },
  connectMs: 5000,
  allowPrivate: true,
  ...rest,
});

export const REQUEST: UpstreamRequest = {
  method: "POST",
  path: "/chat/completions",
  headers: { "content-type": "application/json", "content-length": "2" },
  body: [Buffer.from("{}")],
};

export interface Result {
  readonly status?: number;
  readonly headers?: IncomingHttpHeaders;
  readonly text?: string;
  readonly error?: DomainError;
}

export function ask(upstream: UpstreamTransport, request: UpstreamRequest = REQUEST): Promise<Result> {
  return new Promise((resolve) => {
    let result: Result = { text: "" };
    upstream.dispatch(request, {
      onHeaders: (status, headers) => {
        result = { ...result, status, headers };
      },
      onData: (bytes) => {
        result = { ...result, text: result.text + bytes.toString() };
        return true;
      },
      onEnd: () => resolve(result),
      onError: (error) => resolve({ ...result, error }),
    });
  });
}
