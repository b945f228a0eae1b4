import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export type EngineScript = (request: IncomingMessage, response: ServerResponse) => unknown;

/** A stand-in for an inference server that does what a test's script says, over real sockets. */
export class ScriptedEngine {
  readonly server: Server;
  readonly requests: IncomingMessage[] = [];
  script: EngineScript = (_request, response) => response.writeHead(500).end();

  constructor() {
    this.server = createServer((request, response) => {
      this.requests.push(request);
      this.script(request, response);
    });
  }

  async start(): Promise<number> {
    await new Promise<void>((resolve) => this.server.listen(0, "127.0.0.1", resolve));
    return (this.server.address() as AddressInfo).port;
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    if (this.server.listening) await new Promise((resolve) => this.server.close(resolve));
  }
}

export async function readBytes(request: IncomingMessage): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  return Buffer.concat(pieces);
}
