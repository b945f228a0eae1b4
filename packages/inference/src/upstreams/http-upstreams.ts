import type { Clock } from "@fairlead/protocol/values/clock";
import { type Connect, ConnectionPool } from "@fairlead/wire/http1/connection-pool";
import { LRUCache } from "lru-cache";
import { type GuardedConnectOptions, upstreamConnector } from "./guarded-connect.ts";
import { HttpUpstream } from "./http-upstream.ts";
import type { UpstreamTransport } from "./upstream.ts";

/** More providers than are in use at one time; the one that was not used for longest loses its connections. */
const MAX_POOLS = 512;
/** After which a provider gets new connections, so that a changed address of its name is noticed. */
const CONNECTIONS_MS = 300_000;

/** One provider's API, as far as sending to it is concerned. */
export interface HttpTarget extends Pick<GuardedConnectOptions, "connectMs" | "allowPrivate"> {
  /** Of the provider; its connections are shared by all of its calls. */
  readonly id: string;
  /** `https://api.example.com/v1` */
  readonly baseUrl: string;
  /** Lower-case names; the credential among them. */
  readonly headers: Readonly<Record<string, string>>;
}

export interface HttpUpstreamsOptions
  extends Pick<GuardedConnectOptions, "lookup" | "authorities" | "proxies" | "trustResolution"> {
  readonly clock: Clock;
}

interface Connections {
  readonly target: HttpTarget;
  readonly pool: ConnectionPool;
  /** Monotonic milliseconds. */
  readonly until: number;
}

/** The connections to providers: a pool for each, of as many connections as the provider has calls. */
export class HttpUpstreams {
  readonly #options: HttpUpstreamsOptions;
  readonly #pools: LRUCache<string, Connections>;
  /** Of every pool that still has calls. */
  readonly #open = new Set<ConnectionPool>();

  constructor(options: HttpUpstreamsOptions) {
    this.#options = options;
    this.#pools = new LRUCache({ max: MAX_POOLS, dispose: ({ pool }) => void this.#retire(pool) });
  }

  /** A changed target replaces its provider's connections; calls that run on the old ones end there. */
  open(target: HttpTarget): UpstreamTransport {
    const { headers } = target;
    return new HttpUpstream({ pool: () => this.#poolOf(target), baseUrl: new URL(target.baseUrl), headers });
  }

  /** The provider is gone: its connections close as its calls end. */
  forget(id: string): void {
    this.#pools.delete(id);
  }

  /** Ends every call that is left. */
  async close(): Promise<void> {
    this.#pools.clear();
    await Promise.all([...this.#open].map((pool) => pool.destroy()));
  }

  #poolOf(target: HttpTarget): ConnectionPool {
    const known = this.#pools.get(target.id);
    const now = this.#options.clock.monotonic();
    if (known !== undefined && now < known.until && isSame(known.target, target)) return known.pool;
    const pool = new ConnectionPool({ connect: connectTo(target, this.#options), clock: this.#options.clock });
    this.#open.add(pool);
    this.#pools.set(target.id, { target, pool, until: now + CONNECTIONS_MS });
    return pool;
  }

  async #retire(pool: ConnectionPool): Promise<void> {
    await pool.close();
    this.#open.delete(pool);
  }
}

function connectTo(target: HttpTarget, options: HttpUpstreamsOptions): Connect {
  const connect = upstreamConnector({ ...target, ...options });
  const { host, hostname, protocol, port } = new URL(target.baseUrl);
  const origin = { host, hostname: hostname.replace(/^\[|\]$/g, ""), protocol, port };
  return (callback) => connect(origin, callback);
}

/** As far as connections go: a changed credential is sent on the old ones. */
function isSame(a: HttpTarget, b: HttpTarget): boolean {
  return a.baseUrl === b.baseUrl && a.allowPrivate === b.allowPrivate && a.connectMs === b.connectMs;
}
