import type { Socket } from "node:net";
import type { Clock } from "@fairlead/protocol/clock";
import {
  type ConnectionCall,
  type ConnectionOwner,
  Http1Connection,
  type RenderedRequest,
} from "@fairlead/wire/http1/http1-connection";
import type { buildConnector } from "undici";

export interface ConnectionPoolOptions {
  readonly connect: buildConnector.connector;
  readonly origin: URL;
  readonly clock: Clock;
}

/** A call that waits for its connection. */
export interface PooledCall extends ConnectionCall {
  /** @returns what to send; null where nobody wants it any more. */
  onConnection(connection: Http1Connection): RenderedRequest | null;
  /** There is no connection; nothing was sent. */
  onNotReached(cause: Error): void;
}

/** How often idle connections are looked at. */
const LOOK_MS = 500;

/** The connections to one origin: as many as it has calls. What is free is used again, the last one first. */
export class ConnectionPool implements ConnectionOwner {
  readonly #connect: buildConnector.connector;
  readonly #target: buildConnector.Options;
  readonly #clock: Clock;
  readonly #all = new Set<Http1Connection>();
  readonly #free: { readonly connection: Http1Connection; readonly until: number }[] = [];
  readonly #onClosed = Promise.withResolvers<void>();
  #connecting = 0;
  #looks: NodeJS.Timeout | null = null;
  #isClosed = false;
  #destroyed: Error | null = null;

  constructor({ connect, origin, clock }: ConnectionPoolOptions) {
    this.#connect = connect;
    this.#clock = clock;
    const { host, protocol, port } = origin;
    this.#target = { host, hostname: origin.hostname.replace(/^\[|\]$/g, ""), protocol, port };
  }

  /** May call back at once. */
  run(call: PooledCall): void {
    for (let last = this.#free.pop(); last !== undefined; last = this.#free.pop()) {
      if (last.connection.isOpen && this.#clock.monotonic() < last.until) {
        this.#begin(last.connection, call);
        return;
      }
      last.connection.abort();
    }
    this.#connecting += 1;
    this.#connect(this.#target, (error, socket) => {
      this.#connecting -= 1;
      const refusal = error ?? this.#destroyed;
      if (refusal === null) this.#begin(this.#adopt(socket as Socket), call);
      else {
        // Where it failed there is none, whatever the type says.
        (socket as Socket | null | undefined)?.destroy();
        call.onNotReached(refusal);
        this.#settle();
      }
    });
  }

  /** Closes what is free now, and each of the others after its answer. Resolves when none is left. */
  close(): Promise<void> {
    this.#isClosed = true;
    for (const { connection } of this.#free.splice(0)) connection.abort();
    this.#settle();
    return this.#onClosed.promise;
  }

  /** Ends every call. */
  destroy(): Promise<void> {
    this.#destroyed = new Error("the connections are closed");
    for (const connection of this.#all) connection.destroy(this.#destroyed);
    return this.close();
  }

  onFree(connection: Http1Connection): void {
    if (this.#isClosed || connection.idleMs === 0) {
      connection.abort();
      return;
    }
    this.#free.push({ connection, until: this.#clock.monotonic() + connection.idleMs });
    this.#looks ??= setInterval(() => this.#look(), LOOK_MS).unref();
  }

  onGone(connection: Http1Connection): void {
    this.#all.delete(connection);
    const at = this.#free.findIndex((free) => free.connection === connection);
    if (at !== -1) this.#free.splice(at, 1);
    this.#settle();
  }

  #adopt(socket: Socket): Http1Connection {
    const connection = new Http1Connection(socket, this);
    this.#all.add(connection);
    return connection;
  }

  #begin(connection: Http1Connection, call: PooledCall): void {
    const request = call.onConnection(connection);
    if (request === null) this.onFree(connection);
    else connection.send(request, call);
  }

  /** Closes what was free for too long. */
  #look(): void {
    const now = this.#clock.monotonic();
    for (const free of this.#free.filter(({ until }) => until <= now)) free.connection.abort();
    if (this.#free.length > 0 || this.#looks === null) return;
    clearInterval(this.#looks);
    this.#looks = null;
  }

  #settle(): void {
    if (this.#isClosed && this.#all.size === 0 && this.#connecting === 0) {
      if (this.#looks !== null) clearInterval(this.#looks);
      this.#onClosed.resolve();
    }
  }
}
