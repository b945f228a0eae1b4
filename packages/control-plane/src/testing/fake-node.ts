import { createServer, type Server } from "node:http";
import {
  createServer as createHttp2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import { type AddressInfo, connect, type Socket } from "node:net";
import { TUNNEL_UPGRADE } from "@fairlead/protocol/daemon-link";
import type { TunnelHub } from "../tunnel/tunnel-hub.ts";

export interface NodeRequest {
  readonly stream: ServerHttp2Stream;
  readonly headers: IncomingHttpHeaders;
}

/** Daemons' ends of tunnels into one hub, over real sockets. */
export class FakeNodes {
  readonly #platform: Server;
  readonly #sockets = new Set<Socket>();

  /** Every upgrade is attached as the node that its path names. */
  constructor(hub: TunnelHub) {
    this.#platform = createServer();
    this.#platform.on("upgrade", (request, socket, head) =>
      hub.attach(request.url?.slice(1) ?? "", { socket, head, protocols: undefined }),
    );
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#platform.listen(0, "127.0.0.1", resolve));
  }

  /** Opens a tunnel. Resolves when the hub has answered. */
  async connect(nodeId: string): Promise<FakeNode> {
    const { answer, socket } = await this.connectSilently(nodeId);
    return new FakeNode(answer, socket);
  }

  /** Opens a tunnel at whose end nobody speaks, as after a loss of power. */
  async connectSilently(nodeId: string): Promise<{ readonly answer: string; readonly socket: Socket }> {
    const socket = connect((this.#platform.address() as AddressInfo).port, "127.0.0.1");
    this.#sockets.add(socket);
    socket.on("error", () => undefined);
    socket.write(`GET /${nodeId} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: ${TUNNEL_UPGRADE}\r\n\r\n`);
    const first = await new Promise<Buffer>((resolve) => socket.once("data", resolve));
    socket.pause();
    const end = first.indexOf("\r\n\r\n") + 4;
    if (end < first.length) socket.unshift(first.subarray(end));
    return { answer: first.subarray(0, end).toString(), socket };
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#platform.close();
  }
}

export class FakeNode {
  /** The hub's answer to the upgrade. */
  readonly answer: string;
  readonly socket: Socket;
  session: ServerHttp2Session | undefined;
  onRequest: (request: NodeRequest) => void = ({ stream }) => stream.respond({ ":status": 500 }, { endStream: true });

  constructor(answer: string, socket: Socket) {
    this.answer = answer;
    this.socket = socket;
    const server = createHttp2Server();
    server.on("session", (session) => {
      this.session = session;
      session.on("error", () => undefined);
    });
    server.on("stream", (stream, headers) => {
      stream.on("error", () => undefined);
      this.onRequest({ stream, headers });
    });
    // Another answer than 101 leaves the socket what it was.
    if (answer.startsWith("HTTP/1.1 101")) server.emit("connection", socket);
  }
}
