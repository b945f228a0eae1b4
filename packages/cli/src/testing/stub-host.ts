import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";

export interface SeenRequest {
  readonly method: string;
  readonly url: string;
  readonly authorization: string;
  readonly idempotencyKey: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: unknown;
}

export type Answer = { status?: number; body: unknown } | ((response: ServerResponse) => void);

export interface StubHost {
  readonly url: string;
  readonly seen: SeenRequest[];
  close(): void;
}

/** A host on a free loopback port with responses by `METHOD /path` (without query), and 404 for others. */
export async function startStubHost(answers: Record<string, Answer>): Promise<StubHost> {
  const seen: SeenRequest[] = [];
  const server = createServer((request, response) => {
    void answer(request, response);
  });
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const raw = await text(request);
    const { method = "", url = "" } = request;
    const body: unknown = raw ? JSON.parse(raw) : null;
    const { authorization = "", "idempotency-key": sent } = request.headers;
    const idempotencyKey = typeof sent === "string" ? sent : undefined;
    seen.push({ method, url, authorization, idempotencyKey, headers: request.headers, body });
    const found = answers[`${method} ${url.split("?")[0]}`] ?? { status: 404, body: { error: notFound } };
    if (typeof found === "function") found(response);
    else
      response.writeHead(found.status ?? 200, { "content-type": "application/json" }).end(JSON.stringify(found.body));
  }
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the stub host has no port");
  return {
    url: `http://127.0.0.1:${address.port}`,
    seen,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

const notFound = { message: "There is no such route.", code: "not_found", requestId: "req_1" };
