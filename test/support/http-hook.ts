import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { docker } from "./docker.ts";

export interface Delivery {
  readonly authorization: string | undefined;
  readonly body: unknown;
}

/** An endpoint that agents deliver to, where containers reach it: on the bridge of this machine's Docker engine. */
export class HttpHook {
  readonly deliveries: Delivery[] = [];
  readonly url: string;
  readonly #server: Server;

  private constructor(server: Server, address: string) {
    this.#server = server;
    this.url = `http://${address}:${(server.address() as AddressInfo).port}/hook`;
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
    const address = await docker("network", "inspect", "-f", "{{(index .IPAM.Config 0).Gateway}}", "bridge");
    const server = createServer().listen(0, address);
    await once(server, "listening");
    return new HttpHook(server, address);
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
