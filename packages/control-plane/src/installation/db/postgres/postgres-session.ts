import { isConnectionUnusable } from "@fairlead/hosting/errors/store-errors";
import type { PostgresPoolClient, PostgresQueryResult } from "kysely";
import pg from "pg";
import { type Fence, FencedError } from "../fence.ts";
import type { HostClient } from "./postgres-hosts.ts";

/** Time limits of statements and transactions; null: no limit. */
export interface SessionLimits {
  /** Per statement: the server cancels it; if the server hangs, we close the connection. */
  readonly statementMs: number | null;
  /** How long a statement may wait for a lock. */
  readonly lockMs: number;
  /** How long a transaction may be idle before the server ends it. */
  readonly idleMs: number;
}

/** Lets the server's limit fire first, because its error names the statement. */
const GRACE_MS = 500;

const BEGIN = /^\s*(?:begin|start transaction)\b/i;
const READ_ONLY = /\bread only\b/i;
const END = /^\s*(?:commit|rollback(?! to\b))/i;
const WRITE = /^\s*(?:insert|update|delete)\b/i;

export interface SessionOptions {
  readonly limits: SessionLimits;
  readonly fence: Fence | null;
}

type PooledClient = HostClient & pg.PoolClient;

/**
 * A pool connection used for one statement or transaction. In one round trip, every transaction sets its time limits
 * (by `set local`, which works with PgBouncer in transaction mode) and checks the fence. A single write becomes a
 * transaction. Broken connections are not returned to the pool.
 */
export class PostgresSession implements PostgresPoolClient {
  readonly #client: PooledClient;
  readonly #options: SessionOptions;
  #inTransaction = false;
  #fault: Error | null = null;

  constructor(client: PooledClient, options: SessionOptions) {
    this.#client = client;
    this.#options = options;
  }

  query<R>(sql: string, parameters: readonly unknown[]): Promise<PostgresQueryResult<R>>;
  query(): never;
  query<R>(sql = "", parameters: readonly unknown[] = []): Promise<PostgresQueryResult<R>> {
    return this.#query(sql, parameters) as unknown as Promise<PostgresQueryResult<R>>;
  }

  release(destroy = false): void {
    this.#client.release(destroy || this.#fault !== null);
  }

  async #query(sql: string, parameters: readonly unknown[]): Promise<pg.QueryResult> {
    if (BEGIN.test(sql)) return this.#begin(sql);
    if (!this.#inTransaction && WRITE.test(sql)) return this.#writeAlone(sql, parameters);
    if (END.test(sql)) this.#inTransaction = false;
    return this.#run(sql, parameters);
  }

  async #writeAlone(sql: string, parameters: readonly unknown[]): Promise<pg.QueryResult> {
    await this.#begin("begin");
    try {
      const result = await this.#run(sql, parameters);
      await this.#run("commit");
      return result;
    } catch (error) {
      // An error of the rollback must not hide the first one.
      await this.#run("rollback").catch(() => undefined);
      throw error;
    } finally {
      this.#inTransaction = false;
    }
  }

  async #begin(sql: string): Promise<pg.QueryResult> {
    const { fence } = this.#options;
    const isFenced = fence !== null && !READ_ONLY.test(sql);
    const statements = [sql, ...this.#limits(), ...(isFenced ? [fenceSql(fence)] : [])];
    let results: pg.QueryResult[];
    try {
      results = (await this.#run(statements.join("; "))) as unknown as pg.QueryResult[];
    } catch (error) {
      // The transaction's outcome is unknown.
      this.#fault ??= error instanceof Error ? error : new Error(String(error));
      throw error;
    }
    const [begun] = results;
    if (begun === undefined) throw new Error("PostgreSQL returned no result");
    if (isFenced && results.at(-1)?.rowCount !== 1) {
      await this.#run("rollback").catch(() => undefined);
      fence.lost();
      throw new FencedError();
    }
    this.#inTransaction = true;
    return begun;
  }

  #limits(): string[] {
    const { statementMs, lockMs, idleMs } = this.#options.limits;
    return [
      `set local statement_timeout = ${statementMs ?? 0}`,
      `set local lock_timeout = ${lockMs}`,
      `set local idle_in_transaction_session_timeout = ${idleMs}`,
    ];
  }

  async #run(text: string, parameters: readonly unknown[] = []): Promise<pg.QueryResult> {
    if (this.#fault !== null) throw this.#fault;
    const { statementMs } = this.#options.limits;
    const limit = statementMs === null ? {} : { query_timeout: statementMs + GRACE_MS };
    try {
      return await this.#client.query({ text, values: [...parameters], ...limit });
    } catch (error) {
      if (error instanceof Error && isConnectionUnusable(error)) {
        this.#fault = error;
        this.#client.abort();
      }
      throw error;
    }
  }
}

/** Conflicts with deleting the row, but not with renewing it or with other transactions. */
function fenceSql({ incarnation }: Fence): string {
  return `select from replica where incarnation = ${pg.escapeLiteral(incarnation)} for key share`;
}
