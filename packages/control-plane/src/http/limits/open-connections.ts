import type { IncomingMessage } from "node:http";
import type { Server, Socket } from "node:net";
import type { BoundCounters } from "../../telemetry/bounds/bound-counters.ts";
import { networkOf, plainAddress } from "./client-address.ts";

export interface OpenConnectionsOptions {
  readonly max: number;
  readonly maxPerAddress: number;
  /** Peers that forward connections of many clients. */
  readonly isTrusted: (address: string) => boolean;
  readonly bounds: Pick<BoundCounters, "reached">;
}

type Peer = Pick<Socket, "remoteAddress" | "remotePort">;

interface Connection {
  readonly socket: Socket;
  readonly network: string;
  /** Null if only the total counts. */
  group: Group | null;
}

/** The connections of one address, or all. */
class Group {
  readonly open = new Set<Connection>();
  /** Connections without a request so far, oldest first. */
  readonly silent = new Set<Connection>();
}

/**
 * Limits open connections, in total and per address. Above the limit the oldest one without a request is closed first:
 * clients send theirs immediately, attackers keep connections silent.
 */
export class OpenConnections {
  readonly #options: OpenConnectionsOptions;
  readonly #all = new Group();
  readonly #byNetwork = new Map<string, Group>();
  /** By address and port, because with TLS a request's socket is not the accepted one. */
  readonly #byPeer = new Map<string, Connection>();
  readonly #spoke = new WeakSet<object>();

  constructor(options: OpenConnectionsOptions) {
    this.#options = options;
  }

  get open(): number {
    return this.#all.open.size;
  }

  /** Call last before listening, so that TLS, if any, is inside. */
  guard(server: Server): void {
    const accept = server.listeners("connection");
    server.removeAllListeners("connection");
    server.on("connection", (socket: Socket) => {
      if (!this.#admit(socket)) return;
      for (const listener of accept) listener.call(server, socket);
    });
    const onRequest = ({ socket }: IncomingMessage): void => this.#onRequest(socket);
    // Adding the first listener for one of these would change Node's behavior.
    const events = ["request", "checkContinue", "upgrade"].filter((event) => server.listenerCount(event) > 0);
    for (const event of events) server.prependListener(event, onRequest);
  }

  /** The connection belongs to a known node and is limited as such: a whole fleet may share one address. */
  settle(peer: Peer): void {
    const connection = this.#byPeer.get(peerKey(peer));
    if (connection !== undefined) this.#leaveNetwork(connection);
  }

  #admit(socket: Socket): boolean {
    const { max, maxPerAddress, isTrusted, bounds } = this.#options;
    const address = plainAddress(socket.remoteAddress);
    const connection = this.#add(socket, isTrusted(address) ? null : networkOf(address));
    const { group } = connection;
    if (group !== null && group.open.size > maxPerAddress) {
      bounds.reached("connections_per_address");
      this.#cut(group, connection);
    }
    if (this.#all.open.size > max) {
      bounds.reached("connections");
      this.#cut(this.#all, connection);
    }
    return this.#all.open.has(connection);
  }

  #add(socket: Socket, network: string | null): Connection {
    const group = network === null ? null : (this.#byNetwork.get(network) ?? new Group());
    if (network !== null && group !== null) this.#byNetwork.set(network, group);
    const connection: Connection = { socket, network: network ?? "", group };
    for (const joined of [this.#all, ...(group === null ? [] : [group])]) {
      joined.open.add(connection);
      joined.silent.add(connection);
    }
    const key = peerKey(socket);
    this.#byPeer.set(key, connection);
    socket.once("close", () => {
      this.#remove(connection);
      if (this.#byPeer.get(key) === connection) this.#byPeer.delete(key);
    });
    return connection;
  }

  /** Closes the newest only if all others are active. */
  #cut(group: Group, newest: Connection): void {
    const [oldest = newest] = group.silent;
    this.#remove(oldest);
    oldest.socket.destroy();
  }

  #remove(connection: Connection): void {
    this.#all.open.delete(connection);
    this.#all.silent.delete(connection);
    this.#leaveNetwork(connection);
  }

  #leaveNetwork(connection: Connection): void {
    const { group, network } = connection;
    if (group === null) return;
    connection.group = null;
    group.open.delete(connection);
    group.silent.delete(connection);
    if (group.open.size === 0 && this.#byNetwork.get(network) === group) this.#byNetwork.delete(network);
  }

  #onRequest(socket: Socket): void {
    if (this.#spoke.has(socket)) return;
    this.#spoke.add(socket);
    const connection = this.#byPeer.get(peerKey(socket));
    if (connection === undefined) return;
    this.#all.silent.delete(connection);
    connection.group?.silent.delete(connection);
  }
}

function peerKey({ remoteAddress, remotePort }: Peer): string {
  return `${remoteAddress} ${remotePort}`;
}
