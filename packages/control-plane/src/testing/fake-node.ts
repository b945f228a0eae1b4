import { createServer, type Server } from "node:http";
import { createServer as createHttp2Server, type ServerHttp2Session } from "node:http2";
import { type AddressInfo, connect, type Socket } from "node:net";
import { TUNNEL_PROTOCOL_HEADER, TUNNEL_UPGRADE, type TunnelProtocol } from "@fairlead/protocol/daemon-link";
import { YamuxSession } from "@fairlead/wire/yamux/session";
import type { TunnelHub } from "../tunnel/tunnel-hub.ts";
import { h2Request, type NodeRequest, takeYamuxRequest } from "./node-request.ts";

/** Daemons' ends of tunnels into one hub, over real sockets. */
export class FakeNodes {
  readonly #platform: Server;
  readonly #offer: string | undefined;
  readonly #sockets = new Set<Socket>();

  /**
   * Every upgrade is attached as the node that its path names.
   * @param offer what the daemons say that they speak; undefined as those of the first release
   */
  constructor(hub: TunnelHub, offer?: string) {
    this.#offer = offer;
    this.#platform = createServer();
    this.#platform.on("upgrade", ({ url, headers }, socket, head) => {
      const protocols = headers[TUNNEL_PROTOCOL_HEADER]?.toString();
      hub.attach(url?.slice(1) ?? "", { socket, head, protocols });
    });
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
    const offer = this.#offer === undefined ? "" : `${TUNNEL_PROTOCOL_HEADER}: ${this.#offer}\r\n`;
    const upgrade = `Connection: Upgrade\r\nUpgrade: ${TUNNEL_UPGRADE}\r\n`;
    socket.write(`GET /${nodeId} HTTP/1.1\r\nHost: x\r\n${upgrade}${offer}\r\n`);
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
  onRequest: (request: NodeRequest) => void = (request) => {
    request.respond(500);
    request.end();
  };
  #session: { readonly isClosed: boolean } | undefined;

  constructor(answer: string, socket: Socket) {
    this.answer = answer;
    this.socket = socket;
    // Another answer than 101 leaves the socket what it was.
    if (!answer.startsWith("HTTP/1.1 101")) return;
    if (this.protocol === "yamux") this.#speakYamux();
    else this.#speakHttp2();
  }

  /** The one that the hub has chosen. */
  get protocol(): TunnelProtocol {
    return this.answer.includes(`${TUNNEL_PROTOCOL_HEADER}: yamux\r\n`) ? "yamux" : "h2";
  }

  /** Whether the tunnel is at its end. */
  get isClosed(): boolean {
    return this.#session?.isClosed === true;
  }

  #speakYamux(): void {
    this.#session = new YamuxSession({
      socket: this.socket,
      onStream: (stream) => takeYamuxRequest(stream, (request) => this.onRequest(request)),
      onClose: () => undefined,
    });
    this.socket.resume();
  }

  #speakHttp2(): void {
    const server = createHttp2Server({ settings: { enableConnectProtocol: true } });
    server.on("session", (session: ServerHttp2Session) => {
      session.on("error", () => undefined);
      this.#session = {
        get isClosed() {
          return session.destroyed;
        },
      };
    });
    server.on("stream", (stream, headers) => this.onRequest(h2Request(stream, headers)));
    server.emit("connection", this.socket);
  }
}
