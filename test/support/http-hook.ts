import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { OutsideHost } from "./outside-host.ts";

export interface Delivery {
  readonly authorization: string | undefined;
  readonly body: unknown;
}

/** An endpoint that agents deliver to, where containers reach it: on another host. */
export class HttpHook {
  readonly deliveries: Delivery[] = [];
  readonly url: string;
  readonly #server: Server;
  readonly #host: OutsideHost;

  private constructor(server: Server, host: OutsideHost) {
    this.#server = server;
    this.#host = host;
    this.url = `http://${host.address}/hook`;
    server.on("request", (request, response) => {
      let text = "";
      request.on("data", (piece) => {
        text += String(piece);
      });
      request.on("end", () => {
        this.deliveries.push({ authorization: request.headers.authorization, body: JSON.parse(text) });
        response.writeHead(204).end();
      });
    });
  }

  static async open(): Promise<HttpHook> {
    const host = new OutsideHost();
    const server = createServer().listen(0, host.ourAddress);
    await once(server, "listening");
    await host.forward((server.address() as AddressInfo).port);
    return new HttpHook(server, host);
  }

  async close(): Promise<void> {
    this.#host.close();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
