import { closeSync, openSync } from "node:fs";
import Sqlite from "better-sqlite3";
import { CompiledQuery, type Driver, Kysely, type SqliteDatabase, SqliteDialect } from "kysely";
import { inTransaction, type OpenedHandle, type StatementLogger } from "../opened-handle.ts";
import { withQuietRollback } from "../rollback.ts";
import type { Database } from "../tables/schema.ts";
import { PreparedStatements } from "./prepared-statements.ts";
import { StoreThread, workerDialect } from "./worker-dialect.ts";

const OWNER_ONLY = 0o600;
/** The main thread is blocked while it waits. Our other handle writes for milliseconds; a longer lock belongs to another program. */
const MAIN_BUSY_TIMEOUT_MS = 1000;
const WORKER_BUSY_TIMEOUT_MS = 5000;

export function openSqlite(file: string, logger: StatementLogger): OpenedHandle {
  // SQLite gives its -wal and -shm files the mode of the database file.
  if (file !== ":memory:") closeSync(openSync(file, "a", OWNER_ONLY));
  const handle = new Sqlite(file, { timeout: MAIN_BUSY_TIMEOUT_MS });
  handle.pragma("journal_mode = WAL");
  // An acknowledged write must survive a power cut.
  handle.pragma("synchronous = FULL");
  handle.pragma("foreign_keys = ON");
  const db = new Kysely<Database>({
    dialect: new ImmediateDialect({ database: preparing(handle) }),
    log: logger({ handle: "main", blocking: true }),
  });
  // A store in memory exists only on its handle, so tests use that one for everything.
  if (file === ":memory:") {
    const close = (): Promise<void> => closeBoth(db, handle);
    return { db, longReads: db, maintenance: db, writes: db, writeTogether: inTransaction(db), close };
  }
  const onThread = (name: "long" | "writes", thread: StoreThread): Kysely<Database> =>
    new Kysely<Database>({ dialect: workerDialect(thread), log: logger({ handle: name, blocking: false }) });
  const thread = { file, busyTimeoutMs: WORKER_BUSY_TIMEOUT_MS };
  const longReads = onThread("long", new StoreThread(thread));
  const writer = new StoreThread(thread);
  const writes = onThread("writes", writer);
  return {
    db,
    longReads,
    maintenance: longReads,
    writes,
    writeTogether: (statements) => writer.executeTogether(statements),
    close: async () => {
      await longReads.destroy();
      await writes.destroy();
      // Kysely closes the thread only if one of its queries has used it.
      await writer.close();
      await closeBoth(db, handle);
    },
  };
}

/** The handle in the form that the query builder expects. */
function preparing(handle: Sqlite.Database): SqliteDatabase {
  const statements = new PreparedStatements(handle);
  return {
    close: () => void handle.close(),
    prepare: (sql) => {
      const statement = statements.prepare(sql);
      return {
        reader: statement.reader,
        all: (values) => statement.all(values),
        run: (values) => statement.run(values),
        iterate: (values) => handle.prepare(sql).iterate(values),
      };
    },
  };
}

async function closeBoth(db: Kysely<Database>, handle: Sqlite.Database): Promise<void> {
  await db.destroy();
  // Kysely does not close a handle that it has never used.
  if (handle.open) handle.close();
}

/**
 * Transactions take the write lock when they begin. A deferred one that has already read fails immediately when it
 * writes while another handle does (retention, for example), because waiting could deadlock.
 */
class ImmediateDialect extends SqliteDialect {
  override createDriver(): Driver {
    const driver = super.createDriver();
    driver.beginTransaction = async (connection) => {
      await connection.executeQuery(CompiledQuery.raw("begin immediate"));
    };
    return withQuietRollback(driver);
  }
}
