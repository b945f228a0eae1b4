import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/** A piece of network between a node and the platform host, to be broken by tests. */
export class FaultyLink {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #targetPort = 0;

  constructor() {
    this.#server = createServer((near) => {
      const far = connect(this.#targetPort, "127.0.0.1");
      for (const [from, to] of [
        [near, far],
        [far, near],
      ] as const) {
        this.#sockets.add(from);
        from.on("error", () => to.destroy());
        from.on("close", () => {
          this.#sockets.delete(from);
          to.end();
        });
        from.pipe(to);
      }
    });
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async start(targetPort: number): Promise<void> {
    this.#targetPort = targetPort;
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
  }

  /** Both ends see the connection end, as after a crash of the other. */
  close(): void {
    for (const socket of this.#sockets) socket.end();
  }

  /** Nothing arrives any more, and nobody is told. */
  stall(): void {
    for (const socket of this.#sockets) {
      socket.unpipe();
      socket.pause();
    }
  }

  /** Connections are reset, and new ones refused, as after the other end's power cut. */
  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  /** After `stop`, at the same port. */
  async restart(port: number): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(port, "127.0.0.1", resolve));
  }
}
