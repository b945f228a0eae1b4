import type { Duplex } from "node:stream";
import { TUNNEL_UPGRADE } from "@fairlead/protocol/daemon-link";
import type { Clock } from "@fairlead/protocol/values/clock";
import { type LivenessOptions, PeerStalled } from "@fairlead/wire/liveness";
import type { StreamTransport } from "@fairlead/wire/tunnel-transport";
import { FrameFlood } from "@fairlead/wire/yamux/frame-budget";
import { YamuxViolation } from "@fairlead/wire/yamux/frames";
import { StreamHandlerFailed } from "@fairlead/wire/yamux/session";
import { LRUCache } from "lru-cache";
import type { Logger } from "pino";
import type { TunnelOptions } from "./tunnel-options.ts";
import { YamuxTunnel } from "./yamux-tunnel.ts";

export const DEFAULT_TUNNEL_LIVENESS: LivenessOptions = { pingIntervalMs: 10_000, pingTimeoutMs: 10_000 };

/** Tunnels of one node: the current one, and older ones with running calls. */
const MAX_TUNNELS = 4;

/** Maximum number of remembered disconnected nodes. */
const MAX_LOST = 50_000;
/** Daemons reconnect within seconds; a large fleet takes longer. */
const RETURN_MS = 60_000;

const SWITCH = `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${TUNNEL_UPGRADE}\r\n\r\n`;
const CLOSED = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\nRetry-After: 5\r\n\r\n";

export interface TunnelHubOptions {
  readonly log: Logger;
  readonly clock: Clock;
  readonly bounds: TunnelOptions["bounds"];
  readonly liveness?: LivenessOptions;
}

/** Called when a node gets its first tunnel (true) and loses its last usable one (false). */
export type TunnelListener = (nodeId: string, connected: boolean) => void;

/** A node's tunnel request. */
export interface TunnelOffer {
  readonly socket: Duplex;
  /** Bytes of the socket that were already read. */
  readonly head: Buffer;
}

interface NodeTunnels {
  current: YamuxTunnel | null;
  /** The current tunnel, and older ones with running calls. */
  readonly all: Set<YamuxTunnel>;
}

/** Connected nodes, with at most one current tunnel each. */
export class TunnelHub {
  readonly #nodes = new Map<string, NodeTunnels>();
  readonly #listeners = new Set<TunnelListener>();
  /** Nodes blocked for new calls. */
  #held: ReadonlySet<string> = new Set();
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #options: TunnelOptions;
  readonly #startedAt: number;
  /** When nodes lost their last tunnel; Unix milliseconds. */
  readonly #lostAt = new LRUCache<string, number>({ max: MAX_LOST });
  #closed = false;

  constructor({ log, clock, bounds, liveness = DEFAULT_TUNNEL_LIVENESS }: TunnelHubOptions) {
    this.#log = log;
    this.#options = { clock, bounds, liveness };
    this.#clock = clock;
    this.#startedAt = clock.monotonic();
  }

  /**
   * Responds with 101 and takes over the socket. The caller has authenticated the node.
   * A new tunnel replaces the old one, which closes after its last call.
   */
  attach(nodeId: string, { socket, head }: TunnelOffer): void {
    if (socket.destroyed) return;
    if (this.#closed) {
      socket.end(CLOSED);
      return;
    }
    if ("setNoDelay" in socket && typeof socket.setNoDelay === "function") socket.setNoDelay(true);
    socket.on("error", (error) => this.#log.debug({ nodeId, err: error }, "tunnel socket failed"));
    if (head.length > 0) socket.unshift(head);
    socket.write(SWITCH);
    this.#take(nodeId, socket);
  }

  /** @returns access to the node's workloads, or null without a tunnel or while blocked. */
  get(nodeId: string): StreamTransport | null {
    return this.#held.has(nodeId) ? null : this.toDaemon(nodeId);
  }

  /** @returns access to the daemon's services, or null without a tunnel. */
  toDaemon(nodeId: string): StreamTransport | null {
    const current = this.#nodes.get(nodeId)?.current;
    return current?.usable ? current : null;
  }

  /** @returns since when a node has had no tunnel; null if it has one, or had none since the start. */
  lostAt(nodeId: string): number | null {
    return this.#lostAt.get(nodeId) ?? null;
  }

  /** Whether daemons may still be reconnecting after a restart. */
  isReturning(): boolean {
    return this.#clock.monotonic() - this.#startedAt < RETURN_MS;
  }

  /** Waits for reconnecting daemons. @returns whether one of these nodes can be called now. */
  async arrival(nodeIds: readonly string[], maxMs: number): Promise<boolean> {
    const hasArrived = (): boolean => nodeIds.some((nodeId) => this.get(nodeId) !== null);
    if (hasArrived() || maxMs <= 0 || this.#closed || !this.isReturning()) return hasArrived();
    const arrived = Promise.withResolvers<void>();
    const stop = this.onChange(() => {
      if (hasArrived()) arrived.resolve();
    });
    const timer = setTimeout(arrived.resolve, maxMs);
    await arrived.promise;
    clearTimeout(timer);
    stop();
    return hasArrived();
  }

  /** Number of nodes with a usable tunnel. */
  get open(): number {
    let open = 0;
    for (const { current } of this.#nodes.values()) if (current?.usable) open += 1;
    return open;
  }

  /** @returns a function that unsubscribes. */
  onChange(listener: TunnelListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Blocks new calls to a node until `hold` unblocks it; resolves when its last running call has finished. */
  async drain(nodeId: string): Promise<void> {
    this.#held = new Set([...this.#held, nodeId]);
    const tunnels = [...(this.#nodes.get(nodeId)?.all ?? [])];
    await Promise.all(tunnels.map((tunnel) => tunnel.idle()));
  }

  /** Blocks new calls to these nodes, and unblocks all others. */
  hold(nodeIds: ReadonlySet<string>): void {
    this.#held = nodeIds;
  }

  /** Closes all tunnels and calls of a revoked or deleted node. */
  disconnect(nodeId: string): void {
    for (const tunnel of this.#nodes.get(nodeId)?.all ?? []) tunnel.destroy(new Error("the node was disconnected"));
  }

  /** Closes all tunnels and rejects new ones. */
  close(): void {
    this.#closed = true;
    for (const nodeId of this.#nodes.keys()) this.disconnect(nodeId);
  }

  #take(nodeId: string, socket: Duplex): void {
    const tunnel: YamuxTunnel = new YamuxTunnel(socket, this.#options, (reason) =>
      this.#onClosed(nodeId, tunnel, reason),
    );
    const tunnels = this.#nodes.get(nodeId) ?? { current: null, all: new Set<YamuxTunnel>() };
    const older = tunnels.current;
    tunnels.current = tunnel;
    tunnels.all.add(tunnel);
    this.#nodes.set(nodeId, tunnels);
    this.#log.info({ nodeId, replaced: older !== null }, "tunnel open");
    this.#lostAt.delete(nodeId);
    if (older === null) this.#tell(nodeId, true);
    else older.drain();
    this.#dropOldest(tunnels.all);
  }

  /** Endless calls keep their tunnel, so a node that keeps opening tunnels would accumulate them. */
  #dropOldest(all: ReadonlySet<YamuxTunnel>): void {
    const [oldest] = all;
    if (all.size <= MAX_TUNNELS || oldest === undefined) return;
    this.#options.bounds.reached("tunnels_per_node");
    oldest.destroy(new Error("the node has newer tunnels"));
  }

  #onClosed(nodeId: string, tunnel: YamuxTunnel, reason: Error | undefined): void {
    const tunnels = this.#nodes.get(nodeId);
    if (tunnels === undefined) return;
    tunnels.all.delete(tunnel);
    if (tunnels.all.size === 0) this.#nodes.delete(nodeId);
    this.#logClosed(nodeId, reason);
    if (tunnels.current !== tunnel) return;
    tunnels.current = null;
    this.#lostAt.set(nodeId, this.#clock.now());
    this.#tell(nodeId, false);
  }

  #logClosed(nodeId: string, reason: Error | undefined): void {
    const facts = { nodeId, reason: reason?.message };
    if (reason instanceof StreamHandlerFailed) {
      this.#log.error({ ...facts, err: reason }, "tunnel closed: a call failed because of data from the node");
      return;
    }
    if (reason instanceof PeerStalled) this.#options.bounds.reached("tunnel_stalled");
    if (!(reason instanceof YamuxViolation)) {
      this.#log.info(facts, "tunnel closed");
      return;
    }
    this.#options.bounds.reached(reason instanceof FrameFlood ? "tunnel_frames" : "tunnel_window");
    this.#log.warn(facts, "tunnel closed: protocol violation");
  }

  #tell(nodeId: string, connected: boolean): void {
    for (const listener of this.#listeners) listener(nodeId, connected);
  }
}
