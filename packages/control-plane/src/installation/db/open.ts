import { statfsSync } from "node:fs";
import { dirname } from "node:path";
import { storeFault } from "@fairlead/hosting/errors/store-errors";
import { type LogEvent, sql } from "kysely";
import type { OpenedHandle, StatementLogger, WriteTogether } from "./opened-handle.ts";
import { openPostgres, type PostgresOptions } from "./postgres/open-postgres.ts";
import { openSqlite } from "./sqlite/open-sqlite.ts";
import type { OnStatement } from "./statement-watch.ts";

const WRITE = /^\s*(?:insert|update|delete|commit)\b/i;

/** Whether the store takes writes, as its own statements report: a full disk reads well, so a ping alone would not notice. */
export class StoreHealth {
  #fault: Error | null = null;

  /** The error of the last write, if it says that the store cannot write; null after a write that succeeded. */
  get fault(): Error | null {
    return this.#fault;
  }

  observe(event: LogEvent): void {
    if (event.level === "error") this.failed(event.error);
    else if (this.#fault !== null && WRITE.test(event.query.sql)) this.#fault = null;
  }

  failed(error: unknown): void {
    if (error instanceof Error && storeFault(error) !== null) this.#fault = error;
  }

  wrote(): void {
    this.#fault = null;
  }
}

const ROOM_BYTES = 1024 * 1024;

export interface OpenedDatabase extends OpenedHandle {
  /** Rejects where the store does not respond within five seconds, and while it cannot write. */
  ping(): Promise<void>;
  readonly health: Pick<StoreHealth, "fault">;
}

const PING_MS = 5000;

/** A file (or `:memory:`) for SQLite, a `postgres://` URL for PostgreSQL. */
export type StoreLocation = { readonly file: string } | { readonly url: string };

export interface OpenOptions extends PostgresOptions {
  readonly onStatement?: OnStatement;
}

/** Opens or creates the store. The schema is `migrate`'s work. */
export function openDatabase(location: StoreLocation, { onStatement, ...postgres }: OpenOptions = {}): OpenedDatabase {
  const health = new StoreHealth();
  const logger: StatementLogger = (on) => (event) => {
    health.observe(event);
    onStatement?.({ sql: event.query.sql, milliseconds: event.queryDurationMillis, ...on });
  };
  const handle = "file" in location ? openSqlite(location.file, logger) : openPostgres(location.url, logger, postgres);
  const check = async (): Promise<void> => {
    await sql`select 1`.execute(handle.db);
    if (health.fault === null) return;
    if ("file" in location && !hasRoom(location.file)) throw health.fault;
    await handle.db.updateTable("installation").set({ single: 1 }).execute();
  };
  return { ...handle, writeTogether: observed(handle.writeTogether, health), ping: pinging(check), health };
}

/** One check for all who ask meanwhile: a store that hangs is not asked by each of them. */
export function pinging(check: () => Promise<unknown>, timeoutMs = PING_MS): () => Promise<void> {
  let running: Promise<void> | null = null;
  return () => {
    running ??= within(check(), timeoutMs).finally(() => {
      running = null;
    });
    return running;
  };
}

async function within(check: Promise<unknown>, timeoutMs: number): Promise<void> {
  const late = Promise.withResolvers<never>();
  const error = Object.assign(new Error("the store does not respond"), { code: "ETIMEDOUT" });
  const timer = setTimeout(() => late.reject(error), timeoutMs);
  try {
    await Promise.race([check, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** These statements run together on a thread, past the query builder's log. */
function observed(writeTogether: WriteTogether, health: StoreHealth): WriteTogether {
  return async (statements) => {
    try {
      await writeTogether(statements);
    } catch (error) {
      health.failed(error);
      throw error;
    }
    health.wrote();
  };
}

/** A small write can still fit into the write-ahead log's free pages when the disk is full. */
function hasRoom(file: string): boolean {
  const { bavail, bsize } = statfsSync(dirname(file));
  return bavail * bsize >= ROOM_BYTES;
}
