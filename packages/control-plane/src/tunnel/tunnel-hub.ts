import type { Duplex } from "node:stream";
import {
  TUNNEL_PROTOCOL_HEADER,
  TUNNEL_PROTOCOLS,
  TUNNEL_UPGRADE,
  type TunnelProtocol,
} from "@fairlead/protocol/daemon-link";
import type { LivenessOptions } from "@fairlead/wire/liveness";
import type { Logger } from "pino";
import { H2Tunnel } from "./h2-tunnel.ts";
import type { StreamTransport, Tunnel } from "./tunnel-transport.ts";
import { YamuxTunnel } from "./yamux-tunnel.ts";

export const DEFAULT_LIVENESS: LivenessOptions = { pingIntervalMs: 10_000, pingTimeoutMs: 10_000 };

const TUNNELS = { h2: H2Tunnel, yamux: YamuxTunnel } as const;

const switchTo = (protocol: TunnelProtocol): string =>
  `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${TUNNEL_UPGRADE}\r\n${TUNNEL_PROTOCOL_HEADER}: ${protocol}\r\n\r\n`;
const CLOSED = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\nRetry-After: 5\r\n\r\n";

export interface TunnelHubOptions {
  readonly log: Logger;
  readonly liveness?: LivenessOptions;
}

/** Told when a node gets its first tunnel (true) and when it loses its last usable one (false). */
export type TunnelListener = (nodeId: string, connected: boolean) => void;

/** A node's request for a tunnel. */
export interface TunnelOffer {
  readonly socket: Duplex;
  /** What of the socket's bytes was read already. */
  readonly head: Buffer;
  /** As the daemon sent it: what it speaks, the best first. Undefined from daemons of former releases. */
  readonly protocols: string | undefined;
}

interface NodeTunnels {
  current: Tunnel | null;
  /** The current one, and older ones whose last calls still run. */
  readonly all: Set<Tunnel>;
}

/** Who is reachable: at most one current tunnel per node. */
export class TunnelHub {
  readonly #nodes = new Map<string, NodeTunnels>();
  readonly #listeners = new Set<TunnelListener>();
  /** Nodes that take no new calls. */
  #held: ReadonlySet<string> = new Set();
  readonly #log: Logger;
  readonly #liveness: LivenessOptions;
  #closed = false;

  constructor(options: TunnelHubOptions) {
    this.#log = options.log;
    this.#liveness = options.liveness ?? DEFAULT_LIVENESS;
  }

  /**
   * Answers 101 and takes the socket over. The caller has checked that the request comes from this node.
   * A newer tunnel replaces an older one, which takes no new calls and closes after its last.
   */
  attach(nodeId: string, { socket, head, protocols }: TunnelOffer): void {
    const protocol = chosen(protocols);
    // HTTP/2 over a socket that has lost its handle would bring the process down.
    if (socket.destroyed) return;
    if (this.#closed) {
      socket.end(CLOSED);
      return;
    }
    if ("setNoDelay" in socket && typeof socket.setNoDelay === "function") socket.setNoDelay(true);
    socket.on("error", (error) => this.#log.debug({ nodeId, err: error }, "tunnel socket failed"));
    if (head.length > 0) socket.unshift(head);
    // HTTP/2 takes the socket's handle over; a write of ours still under way then would bring the process down (seen with TLS).
    socket.write(switchTo(protocol), () => {
      if (!socket.destroyed) this.#take(nodeId, { socket, protocol });
    });
  }

  /** @returns the way to the node's workloads, or null while it has no tunnel or takes no new calls. */
  get(nodeId: string): StreamTransport | null {
    return this.#held.has(nodeId) ? null : this.toDaemon(nodeId);
  }

  /** @returns the way to the daemon's own services, or null while it has no tunnel. */
  toDaemon(nodeId: string): StreamTransport | null {
    const current = this.#nodes.get(nodeId)?.current;
    return current?.usable ? current : null;
  }

  /** How many nodes have a usable tunnel. */
  get open(): number {
    let open = 0;
    for (const { current } of this.#nodes.values()) if (current?.usable) open += 1;
    return open;
  }

  /** @returns a function that ends the listening. */
  onChange(listener: TunnelListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Lets no new call through to a node until `hold` says otherwise; resolves when the last call that runs now is over. */
  async drain(nodeId: string): Promise<void> {
    this.#held = new Set([...this.#held, nodeId]);
    const tunnels = [...(this.#nodes.get(nodeId)?.all ?? [])];
    await Promise.all(tunnels.map((tunnel) => tunnel.idle()));
  }

  /** Lets no new call through to these nodes, and to all others again. */
  hold(nodeIds: ReadonlySet<string>): void {
    this.#held = nodeIds;
  }

  /** Cuts every tunnel of a node at once, with all its calls: its identity is revoked or it is deleted. */
  disconnect(nodeId: string): void {
    for (const tunnel of this.#nodes.get(nodeId)?.all ?? []) tunnel.destroy(new Error("the node was disconnected"));
  }

  /** Cuts every tunnel and takes no new one. */
  close(): void {
    this.#closed = true;
    for (const nodeId of this.#nodes.keys()) this.disconnect(nodeId);
  }

  #take(nodeId: string, { socket, protocol }: AcceptedTunnel): void {
    if (this.#closed) {
      socket.destroy();
      return;
    }
    const tunnel: Tunnel = new TUNNELS[protocol](socket, this.#liveness, (reason) =>
      this.#onClosed(nodeId, tunnel, reason),
    );
    const tunnels = this.#nodes.get(nodeId) ?? { current: null, all: new Set<Tunnel>() };
    const older = tunnels.current;
    tunnels.current = tunnel;
    tunnels.all.add(tunnel);
    this.#nodes.set(nodeId, tunnels);
    this.#log.info({ nodeId, protocol, replaced: older !== null }, "tunnel open");
    if (older === null) this.#tell(nodeId, true);
    else void older.drain();
  }

  #onClosed(nodeId: string, tunnel: Tunnel, reason: Error | undefined): void {
    const tunnels = this.#nodes.get(nodeId);
    if (tunnels === undefined) return;
    tunnels.all.delete(tunnel);
    if (tunnels.all.size === 0) this.#nodes.delete(nodeId);
    this.#log.info({ nodeId, reason: reason?.message }, "tunnel closed");
    if (tunnels.current !== tunnel) return;
    tunnels.current = null;
    this.#tell(nodeId, false);
  }

  #tell(nodeId: string, connected: boolean): void {
    for (const listener of this.#listeners) listener(nodeId, connected);
  }
}

interface AcceptedTunnel {
  readonly socket: Duplex;
  readonly protocol: TunnelProtocol;
}

function chosen(offered: string | undefined): TunnelProtocol {
  const names = (offered ?? "").split(",").map((name) => name.trim());
  return TUNNEL_PROTOCOLS.find((protocol) => names.includes(protocol)) ?? "h2";
}
