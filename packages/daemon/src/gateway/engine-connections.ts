import type { IncomingHttpHeaders } from "node:http";
import { connect as netConnect, type Socket } from "node:net";
import { type Clock, systemClock } from "@fairlead/protocol/clock";
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
  /** Milliseconds that a connection may lie idle before it is closed. */
  readonly idleMs?: number;
  /** Milliseconds that an engine must have left an idle one open, before its connections are used twice. */
  readonly trialMs?: number;
  readonly clock?: Pick<Clock, "monotonic">;
}

const IDLE_MS = 1000;
/** Servers close what lies idle, some after 2 s: one that is closed just when a request comes takes the request with it. */
const TRIAL_MS = 2000;

/**
 * Connections to engines, used again where that is safe: a fresh one costs more than the rest of a small call. Some engines close
 * after an answer although they promise to keep the connection (llama-server does after streams), and then the next request is lost.
 * So an engine first has to show that it keeps one, and is tried anew once it has closed one by itself.
 */
export class EngineConnections {
  readonly #idleMs: number;
  readonly #trialMs: number;
  readonly #clock: Pick<Clock, "monotonic">;
  /** By engine: the pool of the one connection that is its trial, or that of all where it has passed. */
  readonly #pools = new Map<string, { readonly pool: ConnectionPool; readonly hasPassed: boolean }>();

  constructor({ idleMs = IDLE_MS, trialMs = TRIAL_MS, clock = systemClock }: EngineConnectionsOptions = {}) {
    this.#idleMs = idleMs;
    this.#trialMs = trialMs;
    this.#clock = clock;
  }

  /** May call back at once. */
  run(address: EngineAddress, call: PooledCall): void {
    const engine = `${address.host}:${address.port}`;
    const known = this.#pools.get(engine);
    if (known === undefined) this.#try(engine, address).run(call);
    else if (known.hasPassed) known.pool.run(call);
    else {
      // A connection of its own.
      const pool = this.#open(address, 0, () => undefined);
      pool.run(call);
      void pool.close();
    }
  }

  #try(engine: string, address: EngineAddress): ConnectionPool {
    const trial = this.#open(address, this.#trialMs, (end) => {
      // A stream may last for hours, and says nothing: another request may be the trial.
      if (!this.#leave(engine, trial) || end !== "kept") return;
      const shared = this.#open(address, this.#idleMs, (one) => {
        if (one === "closed free") this.#leave(engine, shared);
      });
      this.#pools.set(engine, { pool: shared, hasPassed: true });
    });
    this.#pools.set(engine, { pool: trial, hasPassed: false });
    return trial;
  }

  /** @returns whether this was the engine's. What runs there ends there. */
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

/** After an answer whose length was not said, the connection may end with it. */
function keepsAfter(headers: IncomingHttpHeaders): boolean {
  return headers["content-length"] !== undefined;
}

function connectTo({ host, port }: EngineAddress): Connect {
  return (callback) => {
    let socket: Socket;
    try {
      socket = netConnect({ host, port, noDelay: true });
    } catch (error) {
      // Node refuses what is no port at once.
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
