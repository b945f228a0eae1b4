import { createServer, type Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { TUNNEL_UPGRADE } from "@fairlead/protocol/daemon-link";
import { systemClock } from "@fairlead/protocol/values/clock";
import { YamuxSession } from "@fairlead/wire/yamux/session";
import type { TunnelHub } from "../tunnel-hub.ts";
import { type NodeRequest, takeNodeRequest } from "./node-request.ts";

/** Daemons' ends of tunnels into one hub, over real sockets. */
export class FakeNodes {
  readonly #platform: Server;
  readonly #sockets = new Set<Socket>();

  /** Every upgrade is attached as the node that its path names. */
  constructor(hub: TunnelHub) {
    this.#platform = createServer();
    this.#platform.on("upgrade", ({ url }, socket, head) => hub.attach(url?.slice(1) ?? "", { socket, head }));
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
    const upgrade = `Connection: Upgrade\r\nUpgrade: ${TUNNEL_UPGRADE}\r\n`;
    socket.write(`GET /${nodeId} HTTP/1.1\r\nHost: x\r\n${upgrade}\r\n`);
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
  readonly #session: YamuxSession | undefined;

  constructor(answer: string, socket: Socket) {
    this.answer = answer;
    this.socket = socket;
    // Another answer than 101 leaves the socket what it was.
    if (!answer.startsWith("HTTP/1.1 101")) return;
    this.#session = new YamuxSession({
      socket,
      clock: systemClock,
      onStream: (stream) => takeNodeRequest(stream, (request) => this.onRequest(request)),
      onClose: () => undefined,
    });
    socket.resume();
  }

  /** Whether the tunnel is at its end. */
  get isClosed(): boolean {
    return this.#session?.isClosed === true;
  }
}
