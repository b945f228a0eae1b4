import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** What is wrong with the way to a registry. */
export type RegistryFault =
  | "none"
  /** Layers come drop by drop. */
  | "slow"
  /** Requests are taken, and nothing is ever answered. */
  | "hung"
  /** A layer begins to come, and nothing comes after that. */
  | "stalled"
  /** The registry has lost every manifest. */
  | "missing"
  /** It answers 500 to everything. */
  | "failing";

const PIECE_BYTES = 64 * 1024;
const DROP_MS = 25;

/** Stands between a Docker engine and a real registry, and breaks what passes. */
export class FaultyRegistry {
  fault: RegistryFault = "none";
  /** Paths that were asked for. */
  readonly asked: string[] = [];
  readonly #upstream: string;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  /** @param upstream the real registry, as `host:port`. */
  constructor(upstream: string) {
    this.#upstream = upstream;
    this.#server = createServer((call, answer) => this.#pass(call, answer));
    this.#server.on("connection", (socket) => {
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
    });
  }

  /** @returns `address:port`, as images are named after it. */
  async listen(address: string): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, address, resolve));
    return `${address}:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Takes another fault on; whoever waits for an answer is cut off. */
  turn(fault: RegistryFault): void {
    this.fault = fault;
    this.asked.length = 0;
    for (const socket of this.#sockets) socket.destroy();
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #pass(call: IncomingMessage, answer: ServerResponse): void {
    const { url = "/", method = "GET" } = call;
    this.asked.push(`${method} ${url}`);
    if (this.fault === "hung") return;
    if (this.fault === "failing") {
      answer.writeHead(500).end();
      return;
    }
    const isMissing = this.fault === "missing" && url.includes("/manifests/");
    const path = isMissing ? url.replace(/sha256:.*$/, `sha256:${"0".repeat(64)}`) : url;
    const [host, port] = this.#upstream.split(":");
    const { headers } = call;
    const onward = request({ host, port, method, path, headers }, (reply) => void this.#answer(reply, { url, answer }));
    onward.on("error", () => answer.destroy());
    call.pipe(onward);
  }

  async #answer(reply: IncomingMessage, { url, answer }: { url: string; answer: ServerResponse }): Promise<void> {
    answer.writeHead(reply.statusCode ?? 502, reply.headers);
    const broken = url.includes("/blobs/sha256:") && (this.fault === "slow" || this.fault === "stalled");
    if (!broken) {
      reply.pipe(answer);
      return;
    }
    for await (const chunk of reply) await this.#drip(chunk as Buffer, answer);
    answer.end();
  }

  async #drip(chunk: Buffer, answer: ServerResponse): Promise<void> {
    for (let at = 0; at < chunk.length && !answer.destroyed; at += PIECE_BYTES) {
      answer.write(chunk.subarray(at, at + PIECE_BYTES));
      if (this.fault === "stalled") await new Promise((resolve) => answer.once("close", resolve));
      else await sleep(DROP_MS);
    }
  }
}
