import { once } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, connect, type Socket } from "node:net";

export interface ConnectProxyOptions {
  /** `user:password` */
  readonly credentials?: string;
  readonly tls?: { readonly cert: string; readonly key: string };
  /** Where a target leads to instead: stands for names that the proxy alone can resolve. */
  readonly route?: (target: string) => string | null;
}

/** An HTTP proxy that connects, and tells what it was asked for. */
export class ConnectProxy {
  /** `host:port` of each CONNECT that was granted. */
  readonly targets: string[] = [];
  readonly refused: number[] = [];
  readonly #options: ConnectProxyOptions;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  /** Answers each CONNECT with this status instead. */
  status: number | null = null;

  /** Never answers. */
  isSilent = false;

  private constructor(options: ConnectProxyOptions) {
    this.#options = options;
    this.#server = options.tls === undefined ? createServer() : createTlsServer(options.tls);
    this.#server.on("connection", (socket: Socket) => this.#track(socket));
    this.#server.on("connect", (request: IncomingMessage, socket: Socket) => this.#onConnect(request, socket));
  }

  static async start(options: ConnectProxyOptions = {}): Promise<ConnectProxy> {
    const proxy = new ConnectProxy(options);
    proxy.#server.listen(0, "127.0.0.1");
    await once(proxy.#server, "listening");
    return proxy;
  }

  get url(): string {
    const scheme = this.#options.tls === undefined ? "http" : "https";
    return `${scheme}://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** With the credentials that it wants. */
  get fullUrl(): string {
    const { credentials } = this.#options;
    return credentials === undefined ? this.url : this.url.replace("//", `//${credentials}@`);
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }

  #track(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on("error", () => undefined);
    socket.once("close", () => this.#sockets.delete(socket));
  }

  #onConnect({ url: target = "", headers }: IncomingMessage, socket: Socket): void {
    if (this.isSilent) return;
    const { credentials, route } = this.#options;
    const wanted = credentials === undefined ? undefined : `Basic ${Buffer.from(credentials).toString("base64")}`;
    const status = this.status ?? (headers["proxy-authorization"] === wanted ? null : 407);
    const routed = route === undefined ? target : route(target);
    if (status !== null || routed === null) {
      this.refused.push(status ?? 503);
      socket.end(`HTTP/1.1 ${status ?? 503} Refused\r\nContent-Length: 0\r\n\r\n`);
      return;
    }
    this.targets.push(target);
    const { hostname, port } = new URL(`http://${routed}`);
    const upstream = connect(Number(port) || 80, hostname.replace(/^\[|\]$/g, ""), () => {
      socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
      socket.pipe(upstream).pipe(socket);
    });
    this.#track(upstream);
    upstream.once("close", () => socket.destroy());
    socket.once("close", () => upstream.destroy());
  }
}
