import type { IncomingHttpHeaders } from "node:http";
import { connect as netConnect, type Socket } from "node:net";
import { type Clock, systemClock } from "@fairlead/protocol/values/clock";
import {
  type Connect,
  type ConnectionEnd,
  ConnectionPool,
  type PooledCall,
} from "@fairlead/wire/http1/connection-pool";

export interface EngineAddress {
  readonly host: string;
  readonly port: number;
}

export interface EngineConnectionsOptions {
  /** Milliseconds until an idle connection is closed. */
  readonly idleMs?: number;
  /** Milliseconds that an engine must have kept an idle connection open before its connections are reused. */
  readonly trialMs?: number;
  readonly clock?: Pick<Clock, "monotonic">;
}

const IDLE_MS = 1000;
/** Servers close idle connections, some after 2 s. A request sent at that moment would be lost. */
const TRIAL_MS = 2000;

/**
 * Pools connections to engines where reuse is safe: a new connection costs more than the rest of a small call. Some engines close
 * the connection after a response although they announced keep-alive (llama-server after streams), and the next request is lost.
 * So each engine must first pass a trial with one connection, again after it has closed one.
 */
export class EngineConnections {
  readonly #idleMs: number;
  readonly #trialMs: number;
  readonly #clock: Pick<Clock, "monotonic">;
  /** By engine: the pool of its single trial connection, or the shared pool once it has passed. */
  readonly #pools = new Map<string, { readonly pool: ConnectionPool; readonly hasPassed: boolean }>();

  constructor({ idleMs = IDLE_MS, trialMs = TRIAL_MS, clock = systemClock }: EngineConnectionsOptions = {}) {
    this.#idleMs = idleMs;
    this.#trialMs = trialMs;
    this.#clock = clock;
  }

  /** May call back synchronously. */
  run(address: EngineAddress, call: PooledCall): void {
    const engine = `${address.host}:${address.port}`;
    const known = this.#pools.get(engine);
    if (known === undefined) this.#try(engine, address).run(call);
    else if (known.hasPassed) known.pool.run(call);
    else {
      // An unpooled connection.
      const pool = this.#open(address, 0, () => undefined);
      pool.run(call);
      void pool.close();
    }
  }

  #try(engine: string, address: EngineAddress): ConnectionPool {
    const trial = this.#open(address, this.#trialMs, (end) => {
      // A stream may last for hours and proves nothing, so another request becomes the trial.
      if (!this.#leave(engine, trial) || end !== "kept") return;
      const shared = this.#open(address, this.#idleMs, (one) => {
        if (one === "closed free") this.#leave(engine, shared);
      });
      this.#pools.set(engine, { pool: shared, hasPassed: true });
    });
    this.#pools.set(engine, { pool: trial, hasPassed: false });
    return trial;
  }

  /** @returns whether the pool was the engine's. Running requests finish on it. */
  #leave(engine: string, pool: ConnectionPool): boolean {
    if (this.#pools.get(engine)?.pool !== pool) return false;
    this.#pools.delete(engine);
    void pool.close();
    return true;
  }

  #open(address: EngineAddress, idleMs: number, onEnd: (end: ConnectionEnd) => void): ConnectionPool {
    return new ConnectionPool({ connect: connectTo(address), clock: this.#clock, idleMs, keepsAfter, onEnd });
  }
}

/** A response without a length may end with its connection. */
function keepsAfter(headers: IncomingHttpHeaders): boolean {
  return headers["content-length"] !== undefined;
}

function connectTo({ host, port }: EngineAddress): Connect {
  return (callback) => {
    let socket: Socket;
    try {
      socket = netConnect({ host, port, noDelay: true });
    } catch (error) {
      // Node throws synchronously for an invalid port.
      callback(error as Error, null);
      return;
    }
    const refuse = (error: Error): void => callback(error, null);
    socket.once("error", refuse);
    socket.once("connect", () => {
      socket.off("error", refuse);
      callback(null, socket);
    });
  };
}
