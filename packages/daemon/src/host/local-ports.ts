import { BlockList, connect, createServer, isIPv4, type Server, type Socket } from "node:net";
import type { DesiredState } from "@fairlead/protocol/workload";
import { type Log, reasonOf } from "../log.ts";
import type { Bridge, ContainerRuntime } from "../runtime/container-runtime.ts";
import type { Timers } from "../timers.ts";

export interface LocalPortsDeps {
  readonly runtime: Pick<ContainerRuntime, "bridge">;
  readonly timers: Timers;
  readonly log: Log;
}

/** Docker may start later than the daemon, or come back with another bridge. */
const LOOK_MS = 15_000;

/**
 * Lets containers reach ports of this machine's loopback address, which their own loopback hides: what the desired state names
 * is listened to at the bridge's address, for the bridge's containers alone.
 */
export class LocalPorts {
  readonly #deps: LocalPortsDeps;
  readonly #doors = new Map<number, Door>();
  #wanted: ReadonlySet<number> = new Set();
  #bridge: Bridge | null = null;
  #running: Promise<void> = Promise.resolve();
  #cancel: () => void = () => undefined;
  #closed = false;
  /** What was told last, so that it is told once. */
  #told = "";

  constructor(deps: LocalPortsDeps) {
    this.#deps = deps;
  }

  desiredChanged({ workloads }: DesiredState): void {
    this.#wanted = new Set(workloads.flatMap(({ localPorts = [] }) => localPorts));
    this.#look();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancel();
    await this.#running;
    this.#shut(() => true);
  }

  #look(): void {
    this.#cancel();
    this.#running = this.#running
      .then(() => this.#update())
      .catch((error: unknown) => this.#tell(`local ports cannot be reached by containers: ${reasonOf(error)}`))
      .finally(() => {
        if (this.#closed || this.#wanted.size === 0) return;
        this.#cancel();
        this.#cancel = this.#deps.timers.after(LOOK_MS, () => this.#look());
      });
  }

  async #update(): Promise<void> {
    if (this.#closed) return;
    if (this.#wanted.size === 0) {
      this.#shut(() => true);
      return;
    }
    const bridge = await this.#deps.runtime.bridge();
    if (bridge === null) throw new Error("the container engine has no bridge network");
    if (JSON.stringify(bridge) !== JSON.stringify(this.#bridge)) this.#shut(() => true);
    this.#bridge = bridge;
    this.#shut((port) => !this.#wanted.has(port));
    const failures: string[] = [];
    for (const port of this.#wanted) {
      if (this.#doors.get(port)?.isOpen) continue;
      const door = new Door(port, bridge);
      this.#doors.set(port, door);
      // In use: whoever listens on all addresses is reached without us.
      await door.open().catch((error: NodeJS.ErrnoException) => {
        if (error.code !== "EADDRINUSE") failures.push(reasonOf(error));
      });
    }
    if (failures.length > 0) throw new Error(failures.join("; "));
    this.#told = "";
  }

  #shut(which: (port: number) => boolean): void {
    for (const [port, door] of this.#doors) {
      if (!which(port)) continue;
      door.close();
      this.#doors.delete(port);
    }
  }

  #tell(message: string): void {
    if (message === this.#told) return;
    this.#told = message;
    this.#deps.log.warn(message);
  }
}

/** One port at the bridge's address. */
class Door {
  readonly #port: number;
  readonly #bridge: Bridge;
  readonly #guests = new BlockList();
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;

  constructor(port: number, bridge: Bridge) {
    this.#port = port;
    this.#bridge = bridge;
    const [net = "", bits = "32"] = bridge.subnet.split("/");
    this.#guests.addSubnet(net, Number(bits), isIPv4(net) ? "ipv4" : "ipv6");
    // What one side has ended may still be answered by the other.
    this.#server = createServer({ allowHalfOpen: true }, (guest) => this.#forward(guest));
  }

  get isOpen(): boolean {
    return this.#server.listening;
  }

  open(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen({ host: this.#bridge.address, port: this.#port }, () => {
        this.#server.off("error", reject);
        this.#server.on("error", () => this.close());
        resolve();
      });
    });
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #forward(guest: Socket): void {
    // The bridge's address can be reached from other networks too, where this machine routes.
    if (!this.#guests.check(guest.remoteAddress ?? "", isIPv4(this.#bridge.address) ? "ipv4" : "ipv6")) {
      guest.destroy();
      return;
    }
    const host = connect({ host: "127.0.0.1", port: this.#port, allowHalfOpen: true });
    this.#join(guest, host);
    this.#join(host, guest);
  }

  #join(from: Socket, to: Socket): void {
    this.#sockets.add(from);
    from.setNoDelay(true);
    from.pipe(to);
    // Its end follows.
    from.on("error", () => undefined);
    from.on("close", () => {
      this.#sockets.delete(from);
      to.destroySoon();
    });
  }
}
