import { BlockList, connect, createServer, type Server, type Socket } from "node:net";
import type { PlatformAddress } from "@fairlead/protocol/workload";
import { connectThroughProxy } from "@fairlead/wire/proxy/proxy-connect";
import { NO_PROXIES, type ProxyRules } from "@fairlead/wire/proxy/proxy-rules";
import { type DaemonLog, reasonOf } from "../process/log.ts";
import type { LoopSnapshot } from "../reconcile/loop.ts";
import { type Network, noGateway } from "../runtime/container-runtime.ts";
import { type ConditionFinding, OK } from "./condition-rules.ts";

export interface PlatformForwarderDeps {
  readonly log: DaemonLog;
  /** Called on each change. */
  readonly onFinding: (finding: ConditionFinding) => void;
  readonly proxies?: Pick<ProxyRules, "find">;
  /** Maximum number of open connections per workload. */
  readonly maxConnections?: number;
}

/** More than an agent needs, but low enough that all agents together leave file handles to the daemon. */
const MAX_CONNECTIONS = 128;

type Pictured = Pick<LoopSnapshot, "desired" | "observed">;

/**
 * Lets workloads reach the platform: the daemon listens on the platform's port at this machine's address in each workload's
 * network and forwards connections from that network only.
 */
export class PlatformForwarder {
  readonly #log: DaemonLog;
  readonly #onFinding: PlatformForwarderDeps["onFinding"];
  readonly #proxies: Pick<ProxyRules, "find">;
  readonly #maxConnections: number;
  readonly #doors = new Map<string, Door>();
  #running: Promise<void> = Promise.resolve();
  #picture: Pictured | null = null;
  #closed = false;
  /** Why workloads cannot reach the platform, by workload. */
  #faults: ReadonlyMap<string, string> = new Map();
  /** The last reported faults, to report changes only. */
  #told: string | null = null;

  constructor({ log, onFinding, proxies = NO_PROXIES, maxConnections = MAX_CONNECTIONS }: PlatformForwarderDeps) {
    this.#log = log;
    this.#onFinding = onFinding;
    this.#proxies = proxies;
    this.#maxConnections = maxConnections;
  }

  /** Failures, such as a port in use, are retried with the next relist. */
  observed(picture: Pictured): void {
    if (picture.observed === null || this.#closed) return;
    const isWaiting = this.#picture !== null;
    this.#picture = picture;
    if (isWaiting) return;
    this.#running = this.#running
      .then(() => this.#update())
      .catch((error: unknown) => this.#log.error({ reason: reasonOf(error) }, "could not forward the platform"));
  }

  /** @returns why a workload cannot reach the platform, or null. */
  faultOf(workloadId: string): string | null {
    return this.#faults.get(workloadId) ?? null;
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#running;
    for (const door of this.#doors.values()) door.close();
    this.#doors.clear();
  }

  async #update(): Promise<void> {
    const picture = this.#picture;
    this.#picture = null;
    if (picture === null || this.#closed) return;
    const wanted = wantedDoors(picture);
    for (const [key, door] of this.#doors) {
      if (wanted.has(key) && door.isOpen) continue;
      door.close();
      this.#doors.delete(key);
    }
    const faults = new Map<string, string>();
    for (const [key, one] of wanted) {
      const fault = this.#doors.has(key) ? null : await this.#open(key, one);
      if (fault !== null) faults.set(one.network.workloadId, fault);
    }
    this.#faults = faults;
    this.#tell([...new Set(faults.values())].join("; "));
  }

  /** @returns why it cannot be opened, or null. */
  async #open(key: string, { network, platform }: Wanted): Promise<string | null> {
    // Some Docker versions report no gateway. Listening on "" would listen on all addresses.
    if (network.gateway === "") return noGateway(network.name);
    const onFull = (): void => this.#full(network.name);
    const onFailed = (error: Error): void => this.#unreachable(network.name, error);
    const limits = { maxConnections: this.#maxConnections, proxies: this.#proxies };
    const door = new Door({ network, platform, ...limits, onFull, onFailed });
    try {
      await door.open();
      this.#doors.set(key, door);
      return null;
    } catch (error) {
      // A platform on this machine that listens on all addresses is reachable without forwarding.
      const isServed = isTaken(error) && platform.host === "127.0.0.1";
      return isServed ? null : `cannot listen on port ${platform.port} of ${network.gateway}: ${reasonOf(error)}`;
    }
  }

  #tell(faults: string): void {
    if (faults === this.#told) return;
    this.#told = faults;
    if (faults === "") {
      this.#onFinding(OK);
      return;
    }
    this.#log.warn({ reason: faults }, "workloads cannot reach the platform");
    const message = `workloads cannot reach the platform: ${faults}`;
    this.#onFinding({ status: "problem", reason: "not_forwarded", message });
  }

  #unreachable(network: string, error: Error): void {
    this.#log.warn({ network, reason: reasonOf(error) }, "a workload cannot reach the platform");
  }

  #full(network: string): void {
    this.#log.warn(
      { network, connections: this.#maxConnections },
      "a workload has too many connections to the platform",
    );
  }
}

function isTaken(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "EADDRINUSE";
}

interface Wanted {
  readonly network: Network;
  readonly platform: PlatformAddress;
}

function wantedDoors({ desired, observed }: Pictured): ReadonlyMap<string, Wanted> {
  const doors = new Map<string, Wanted>();
  for (const { workloadId, network: spec } of desired.workloads) {
    const { platform } = spec;
    if (!platform?.forwarded) continue;
    for (const network of observed?.networks.values() ?? []) {
      if (network.workloadId !== workloadId) continue;
      doors.set([network.id, network.gateway, platform.host, platform.port].join(" "), { network, platform });
    }
  }
  return doors;
}

interface DoorOptions extends Wanted {
  readonly maxConnections: number;
  readonly proxies: Pick<ProxyRules, "find">;
  readonly onFull: () => void;
  /** Connecting through the proxy failed. */
  readonly onFailed: (error: Error) => void;
}

/** Listens on the platform's port in one network. */
class Door {
  readonly #options: DoorOptions;
  readonly #guests = new BlockList();
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;
  #open = 0;
  #isFull = false;
  /** The proxy's last failure, to log it once. */
  #failure = "";

  constructor(options: DoorOptions) {
    this.#options = options;
    const [net = "", bits = "32"] = options.network.subnet.split("/");
    this.#guests.addSubnet(net, Number(bits), "ipv4");
    // Half-closed connections stay open for the response.
    this.#server = createServer({ allowHalfOpen: true }, (guest) => this.#welcome(guest));
  }

  get isOpen(): boolean {
    return this.#server.listening;
  }

  open(): Promise<void> {
    const { network, platform } = this.#options;
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen({ host: network.gateway, port: platform.port }, () => {
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

  #welcome(guest: Socket): void {
    // If this machine routes, other networks can reach the address too.
    if (!this.#guests.check(guest.remoteAddress ?? "", "ipv4")) {
      guest.destroy();
      return;
    }
    if (this.#open >= this.#options.maxConnections) {
      if (!this.#isFull) this.#options.onFull();
      this.#isFull = true;
      guest.destroy();
      return;
    }
    this.#forward(guest);
  }

  #forward(guest: Socket): void {
    const { platform, proxies, onFailed } = this.#options;
    const { host, port } = platform;
    this.#open += 1;
    guest.on("close", () => {
      this.#open -= 1;
      if (this.#open === 0) this.#isFull = false;
    });
    // The protocol is unknown here; nearly always TLS.
    const proxy = proxies.find({ protocol: "https:", hostname: host, port: String(port) });
    if (proxy === null) {
      this.#joinBoth(guest, connect({ host, port, allowHalfOpen: true }));
      return;
    }
    guest.on("error", () => undefined);
    connectThroughProxy({ proxy, host, port }).then(
      (socket) => {
        this.#failure = "";
        this.#joinBoth(guest, socket);
      },
      (error: Error) => {
        guest.destroy();
        if (error.message !== this.#failure) onFailed(error);
        this.#failure = error.message;
      },
    );
  }

  #joinBoth(guest: Socket, platform: Socket): void {
    if (guest.destroyed || !this.isOpen) {
      guest.destroy();
      platform.destroy();
      return;
    }
    this.#join(guest, platform);
    this.#join(platform, guest);
  }

  #join(from: Socket, to: Socket): void {
    this.#sockets.add(from);
    from.setNoDelay(true);
    from.pipe(to);
    // `close` follows.
    from.on("error", () => undefined);
    from.on("close", () => {
      this.#sockets.delete(from);
      to.destroySoon();
    });
  }
}
