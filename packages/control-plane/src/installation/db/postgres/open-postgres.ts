import { isStoreAway } from "@fairlead/hosting/errors/store-errors";
import { type Driver, Kysely, PostgresDialect, type PostgresPool } from "kysely";
import pg from "pg";
import type { Fence } from "../fence.ts";
import { inTransaction, type OpenedHandle, type StatementLogger } from "../opened-handle.ts";
import { withQuietRollback } from "../rollback.ts";
import type { Database } from "../tables/schema.ts";
import { HostClient, type HostClientOptions, PostgresHosts } from "./postgres-hosts.ts";
import { PostgresSession } from "./postgres-session.ts";

const INT8 = 20;
const LIMITS: PostgresLimits = { connections: 10, connectMs: 5000, maxWaiting: 1000, statementMs: 5000 };
const LONG_READ_MS = 30_000;
const LOCK_MS = 3000;
/** Concurrent migrations wait for each other. */
const MAINTENANCE_LOCK_MS = 60_000;
const IDLE_MS = 10_000;

export interface PostgresLimits {
  readonly connections: number;
  /** How long a query may wait for a connection. */
  readonly connectMs: number;
  /** Maximum number of waiting queries; further ones fail immediately. */
  readonly maxWaiting: number;
  /** Statement timeout, except for long reads and maintenance. */
  readonly statementMs: number;
}

export interface PostgresOptions {
  readonly limits?: Partial<PostgresLimits>;
  readonly fence?: Fence | null;
}

/** Returns rows as on SQLite: `pg` would return 64-bit integers as strings, and ours stay below 2^53 (money is deliberately read as text). */
export function openPostgres(url: string, logger: StatementLogger, options: PostgresOptions = {}): OpenedHandle {
  const limits = { ...LIMITS, ...options.limits };
  const hosts = new PostgresHosts(url);
  const pool = createPool(hosts, limits);
  const log = logger({ handle: "main", blocking: false });
  const open = (statementMs: number | null, lockMs = LOCK_MS): Kysely<Database> => {
    const session = { limits: { statementMs, lockMs, idleMs: IDLE_MS }, fence: options.fence ?? null };
    return new Kysely<Database>({
      dialect: new QuietRollbackDialect({ pool: sessions({ pool, hosts, limits }, session) }),
      log,
    });
  };
  const db = open(limits.statementMs);
  const longReads = open(LONG_READ_MS);
  const maintenance = open(null, MAINTENANCE_LOCK_MS);
  const close = async (): Promise<void> => {
    await Promise.all([db, longReads, maintenance].map((handle) => handle.destroy()));
    await pool.end();
  };
  // Queries run in the database's processes, so they do not block our thread.
  return { db, longReads, maintenance, writes: db, writeTogether: inTransaction(db), close };
}

function createPool(hosts: PostgresHosts, limits: PostgresLimits): pg.Pool {
  const config: pg.PoolConfig & HostClientOptions = {
    hosts,
    Client: HostClient as unknown as new () => pg.ClientBase,
    max: limits.connections,
    connectionTimeoutMillis: limits.connectMs,
    keepAlive: true,
    types: {
      getTypeParser: (oid, format) => (oid === INT8 ? Number : pg.types.getTypeParser(oid, format as "text")),
    },
  };
  const pool = new pg.Pool(config);
  // A connection closed by the server is not our error; the next query opens another. The pool listens only on idle
  // connections: without our own listener, a connection that breaks while in use would end the process.
  pool.on("error", () => undefined);
  pool.on("connect", (client) => client.on("error", () => undefined));
  return pool;
}

interface BoundedPool {
  readonly pool: pg.Pool;
  readonly hosts: PostgresHosts;
  readonly limits: PostgresLimits;
}

function sessions(bounded: BoundedPool, session: ConstructorParameters<typeof PostgresSession>[1]): PostgresPool {
  return {
    options: bounded.pool.options,
    connect: async () => new PostgresSession((await connect(bounded)) as pg.PoolClient & HostClient, session),
    // Several handles share the pool; the store closes it.
    end: async () => undefined,
  };
}

/** Tries each host once, so that a hanging database does not accumulate requests. */
async function connect({ pool, hosts, limits }: BoundedPool): Promise<pg.PoolClient> {
  for (let left = hosts.count; ; left--) {
    if (pool.waitingCount >= limits.maxWaiting) {
      // PostgreSQL's code for too many connections, which the caller maps to `unavailable`.
      throw Object.assign(new Error("too many queries are waiting for the database"), { code: "53300" });
    }
    try {
      return await pool.connect();
    } catch (error) {
      if (left <= 1 || !isStoreAway(error) || isBusy(error)) throw error;
    }
  }
}

/** All connections were in use until the timeout, so another host would not help. */
function isBusy(error: unknown): boolean {
  return error instanceof Error && error.message === "timeout exceeded when trying to connect";
}

class QuietRollbackDialect extends PostgresDialect {
  override createDriver(): Driver {
    return withQuietRollback(super.createDriver());
  }
}
