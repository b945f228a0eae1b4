import { once } from "node:events";
import { type ClientRequest, request as httpRequest, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import type { WorkloadConnect } from "@fairlead/protocol/workload-connect";

export interface RelayRequest {
  /** What follows the gateway's address. */
  readonly path?: string;
  /** The whole request target, in place of a path behind the gateway's address. */
  readonly target?: string;
  readonly method?: string;
  readonly headers?: Record<string, string | readonly string[]>;
  /** Null: none. */
  readonly token?: string | null;
}

/** A request as it is written, without anything that fetch would tidy. The caller ends it. */
export function relayRequest({ gatewayUrl, authToken }: WorkloadConnect, asked: RelayRequest = {}): ClientRequest {
  const { hostname, port, pathname } = new URL(gatewayUrl);
  const { path = "/", target = pathname + path, method = "GET", headers = {}, token = authToken } = asked;
  const request = httpRequest({
    hostname,
    port,
    path: target,
    method,
    agent: false,
    headers: { ...(token === null ? {} : { authorization: `Bearer ${token}` }), ...headers },
  });
  request.on("error", () => undefined);
  return request;
}

export interface RelayAnswer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly text: string;
}

/** The answer, from its head on; nobody reads it until the test does. */
export async function headOf(request: ClientRequest): Promise<IncomingMessage> {
  const [answer] = (await once(request, "response")) as [IncomingMessage];
  answer.on("error", () => undefined);
  return answer;
}

/** Ends the request and reads the whole answer. */
export async function answerOf(request: ClientRequest): Promise<RelayAnswer> {
  const answer = await headOf(request.end());
  return { status: answer.statusCode ?? 0, headers: answer.headers, text: await text(answer) };
}
