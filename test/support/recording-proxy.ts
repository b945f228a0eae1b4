import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { text } from "node:stream/consumers";
import type { RecordedStep } from "./recording.ts";
import { JsonFrames } from "./web-socket-frames.ts";

/** Stands between a daemon and its platform host, and writes down what they say: HTTP calls and the link's messages. */
export class RecordingProxy {
  readonly steps: RecordedStep[] = [];
  target = "";
  readonly #sockets = new Set<Socket | Duplex>();
  readonly #server = createServer((request, response) => void this.#forward(request, response));

  async start(): Promise<string> {
    this.#server.on("upgrade", (request, socket) => this.#upgrade(request, socket));
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  stop(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await text(request);
    const { authorization = "" } = request.headers;
    const method = request.method ?? "";
    const path = request.url ?? "";
    const headers = { "content-type": "application/json", ...(authorization === "" ? {} : { authorization }) };
    const answer = await fetch(`${this.target}${path}`, { method, headers, ...(body === "" ? {} : { body }) });
    const answered = await answer.text();
    const bearer = bearerOf(authorization);
    this.steps.push({
      http: {
        method,
        path,
        bearer,
        body: body === "" ? null : JSON.parse(body),
        answer: { status: answer.status, body: JSON.parse(answered) },
      },
    });
    response.writeHead(answer.status, { "content-type": "application/json" }).end(answered);
  }

  #upgrade(request: IncomingMessage, near: Duplex): void {
    const { hostname, port } = new URL(this.target);
    const far = connect(Number(port), hostname);
    for (const socket of [near, far]) {
      this.#sockets.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => {
        near.destroy();
        far.destroy();
      });
    }
    const { rawHeaders } = request;
    const lines = rawHeaders.flatMap((name, index) => (index % 2 === 0 ? [`${name}: ${rawHeaders[index + 1]}`] : []));
    far.write(`${request.method} ${request.url} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`);
    if (request.url?.endsWith("/link")) this.#listen(request, { near, far });
    near.pipe(far);
    far.pipe(near);
  }

  #listen({ url = "", headers }: IncomingMessage, { near, far }: { near: Duplex; far: Socket }): void {
    this.steps.push({ open: { path: url, bearer: bearerOf(headers.authorization ?? "") ?? "" } });
    const fromDaemon = new JsonFrames({ afterHead: false }, (frame) => this.steps.push({ daemon: frame }));
    const fromServer = new JsonFrames({ afterHead: true }, (frame) => this.steps.push({ server: frame }));
    near.on("data", (bytes: Buffer) => fromDaemon.push(bytes));
    far.on("data", (bytes: Buffer) => fromServer.push(bytes));
  }
}

function bearerOf(authorization: string): string | null {
  return authorization.startsWith("Bearer ") ? authorization.slice("Bearer ".length) : null;
}
