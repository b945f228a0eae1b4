import type { IncomingHttpHeaders } from "node:http";
import type { Socket } from "node:net";
import { type ConnectionCall, type ConnectionOwner, Http1Connection } from "./http1-connection.ts";

/** Opens a connection and calls back once; the socket is null on failure. */
export type Connect = (callback: (error: Error | null, socket: Socket | null) => void) => void;

/** `used`: by or with a request. `closed free`: by the other side while idle. `kept`: by us after the idle timeout. */
export type ConnectionEnd = "used" | "closed free" | "kept";

export interface ConnectionPoolOptions {
  readonly connect: Connect;
  readonly clock: { /** Monotonic milliseconds. */ monotonic(): number };
  /** Maximum idle time in milliseconds; the other side may require less. */
  readonly idleMs?: number;
  /** Whether a connection can be reused after a response with these headers. Default: whenever HTTP allows it. */
  readonly keepsAfter?: (headers: IncomingHttpHeaders) => boolean;
  /** Called as soon as the end is certain; possibly twice for `used`. */
  readonly onEnd?: (end: ConnectionEnd) => void;
}

/** A call waiting for a connection. */
export interface PooledCall extends ConnectionCall {
  /** Sends the request. @returns false if the call no longer needs a connection. */
  onConnection(connection: Http1Connection): boolean;
  /** No connection could be opened; nothing was sent. */
  onNotReached(cause: Error): void;
}

/** Idle times come from the other side, so limit the count: each connection costs a file descriptor. */
const MAX_FREE = 256;

interface Free {
  readonly connection: Http1Connection;
  /** Monotonic milliseconds. */
  readonly until: number;
}

/** Connections to one origin, one per concurrent call. The most recently used idle connection is reused first. */
export class ConnectionPool implements ConnectionOwner {
  readonly #options: ConnectionPoolOptions;
  readonly #all = new Set<Http1Connection>();
  readonly #free: Free[] = [];
  readonly #onClosed = Promise.withResolvers<void>();
  #connecting = 0;
  #look: NodeJS.Timeout | null = null;
  #isClosed = false;
  #destroyed: Error | null = null;

  constructor(options: ConnectionPoolOptions) {
    this.#options = options;
  }

  /** May call back synchronously. */
  run(call: PooledCall): void {
    for (let last = this.#free.pop(); last !== undefined; last = this.#free.pop()) {
      if (last.connection.isOpen && this.#options.clock.monotonic() < last.until) {
        this.#begin(last.connection, call);
        return;
      }
      this.#drop(last);
    }
    this.#connecting += 1;
    this.#options.connect((error, socket) => {
      this.#connecting -= 1;
      const refusal = error ?? this.#destroyed;
      if (refusal === null && socket !== null) this.#begin(this.#adopt(socket), call);
      else {
        socket?.destroy();
        this.#options.onEnd?.("used");
        call.onNotReached(refusal ?? new Error("there is no connection"));
        this.#settle();
      }
    });
  }

  /** Closes idle connections now and the others after their response. Resolves when all are closed. */
  close(): Promise<void> {
    this.#isClosed = true;
    for (const { connection } of this.#free.splice(0)) connection.abort();
    this.#settle();
    return this.#onClosed.promise;
  }

  /** Aborts every call. */
  destroy(): Promise<void> {
    this.#destroyed = new Error("the connections are closed");
    for (const connection of this.#all) connection.destroy(this.#destroyed);
    return this.close();
  }

  keepsAfter(headers: IncomingHttpHeaders): boolean {
    const { keepsAfter, onEnd } = this.#options;
    if (keepsAfter?.(headers) ?? true) return true;
    onEnd?.("used");
    return false;
  }

  onFree(connection: Http1Connection): void {
    const { clock, idleMs = Number.POSITIVE_INFINITY } = this.#options;
    const wait = Math.min(idleMs, connection.idleMs);
    if (this.#isClosed || wait === 0 || this.#free.length >= MAX_FREE) {
      connection.abort();
      return;
    }
    this.#free.push({ connection, until: clock.monotonic() + wait });
    this.#look ??= setTimeout(this.#onLook, wait).unref();
  }

  onGone(connection: Http1Connection): void {
    this.#all.delete(connection);
    const at = this.#free.findIndex((free) => free.connection === connection);
    if (at !== -1) this.#free.splice(at, 1);
    this.#options.onEnd?.(at === -1 ? "used" : "closed free");
    this.#settle();
  }

  #adopt(socket: Socket): Http1Connection {
    const connection = new Http1Connection(socket, this);
    this.#all.add(connection);
    return connection;
  }

  #begin(connection: Http1Connection, call: PooledCall): void {
    if (!call.onConnection(connection) && connection.isOpen) this.onFree(connection);
  }

  /** Removes it from the idle connections. */
  #drop({ connection }: Free): void {
    const end = connection.isOpen ? "kept" : "closed free";
    connection.abort();
    this.#options.onEnd?.(end);
  }

  /** Closes connections that were idle for too long. */
  readonly #onLook = (): void => {
    this.#look = null;
    const now = this.#options.clock.monotonic();
    for (const free of this.#free.splice(0)) {
      if (free.until > now) this.#free.push(free);
      else this.#drop(free);
    }
    const next = Math.min(...this.#free.map(({ until }) => until));
    if (this.#free.length > 0) this.#look = setTimeout(this.#onLook, next - now).unref();
  };

  #settle(): void {
    if (this.#isClosed && this.#all.size === 0 && this.#connecting === 0) {
      if (this.#look !== null) clearTimeout(this.#look);
      this.#onClosed.resolve();
    }
  }
}
