import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { selfSigned } from "./self-signed.ts";

export interface ProviderRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

const COMPLETION = {
  id: "c",
  object: "chat.completion",
  created: 1,
  model: "large",
  choices: [{ index: 0, message: { role: "assistant", content: "Hello." }, finish_reason: "stop" }],
  usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
};
const CHUNK = { id: "c", object: "chat.completion.chunk", created: 1, model: "large" };
const CHUNKS = [
  { ...CHUNK, choices: [{ index: 0, delta: { role: "assistant", content: "Hel" }, finish_reason: null }] },
  { ...CHUNK, choices: [{ index: 0, delta: { content: "lo." }, finish_reason: "stop" }] },
];

/** A provider's API over https with a certificate of nobody's, which takes one credential. What it answers follows from the model. */
export class HttpsProvider {
  readonly requests: ProviderRequest[] = [];
  /** Of its certificate, which is its own authority. */
  readonly authority: string;
  /** How many connections were opened, refused handshakes among them. */
  connections = 0;
  readonly #server: Server;
  readonly #credential: string;
  readonly #redirectTo: string;

  /** @param redirectTo where the model `elsewhere` sends its callers. */
  constructor({ credential, redirectTo }: { readonly credential: string; readonly redirectTo: string }) {
    const tls = selfSigned(["provider.test"]);
    this.authority = tls.cert;
    this.#credential = credential;
    this.#redirectTo = redirectTo;
    this.#server = createServer(tls, (request, response) => void this.#answer(request, response));
    this.#server.on("connection", () => this.connections++);
  }

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
  }

  /** Below which the API lies. */
  get baseUrl(): string {
    return `https://127.0.0.1:${(this.#server.address() as AddressInfo).port}/deep/v1`;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "", url = "", headers } = request;
    const body = await text(request);
    this.requests.push({ method, path: url, headers, body });
    const sent = headers.authorization ?? "";
    if (sent !== `Bearer ${this.#credential}`) return fail(response, 401, `Incorrect API key provided: ${sent}`);
    if (url === "/deep/v1/models") return json(response, 200, { data: [{ id: "large" }, { id: "org/small" }] });
    if (url !== "/deep/v1/chat/completions") return fail(response, 404, "no such path");
    const { model, stream = false } = JSON.parse(body) as { readonly model: string; readonly stream?: boolean };
    if (model === "elsewhere") return void response.writeHead(307, { location: this.#redirectTo }).end();
    if (model === "unpaid") return fail(response, 402, `The account of ${sent} is empty`);
    if (!stream) return json(response, 200, COMPLETION);
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(`${CHUNKS.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("")}data: [DONE]\n\n`);
  }
}

function json(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

function fail(response: ServerResponse, status: number, message: string): void {
  json(response, status, { error: { message, type: "invalid_request_error", code: null, param: null } });
}
