import { closeSync, openSync } from "node:fs";
import Sqlite from "better-sqlite3";
import { CompiledQuery, type Driver, Kysely, type SqliteDatabase, SqliteDialect } from "kysely";
import { inTransaction, type OpenedHandle, type StatementLogger } from "./opened-handle.ts";
import { PreparedStatements } from "./prepared-statements.ts";
import type { Database } from "./schema.ts";
import { StoreThread, workerDialect } from "./worker-dialect.ts";

const OWNER_ONLY = 0o600;
/** The main thread serves nobody while it waits. Our own other handle writes for milliseconds; more is another program's doing. */
const MAIN_BUSY_TIMEOUT_MS = 1000;
const WORKER_BUSY_TIMEOUT_MS = 5000;

export function openSqlite(file: string, logger: StatementLogger): OpenedHandle {
  // SQLite gives its -wal and -shm files the mode of the database file.
  if (file !== ":memory:") closeSync(openSync(file, "a", OWNER_ONLY));
  const handle = new Sqlite(file, { timeout: MAIN_BUSY_TIMEOUT_MS });
  handle.pragma("journal_mode = WAL");
  // An acknowledged write must survive a power cut (design §11).
  handle.pragma("synchronous = FULL");
  handle.pragma("foreign_keys = ON");
  const db = new Kysely<Database>({
    dialect: new ImmediateDialect({ database: preparing(handle) }),
    log: logger({ handle: "main", blocking: true }),
  });
  // A store in memory is its handle's alone, so there the tests do everything on the same one.
  if (file === ":memory:") {
    return { db, longReads: db, writes: db, writeTogether: inTransaction(db), close: () => closeBoth(db, handle) };
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
    writes,
    writeTogether: (statements) => writer.executeTogether(statements),
    close: async () => {
      await longReads.destroy();
      await writes.destroy();
      // A thread that no query of the builder has started is not the builder's to end.
      await writer.close();
      await closeBoth(db, handle);
    },
  };
}

/** The handle as the query builder sees it. */
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
  // Kysely leaves a handle open that it has never used.
  if (handle.open) handle.close();
}

/**
 * Transactions take the write lock at once. A deferred one that has read cannot wait for the lock when it comes to write: SQLite
 * refuses it there and then while another handle writes (retention does), since the two could wait for each other.
 */
class ImmediateDialect extends SqliteDialect {
  override createDriver(): Driver {
    const driver = super.createDriver();
    driver.beginTransaction = async (connection) => {
      await connection.executeQuery(CompiledQuery.raw("begin immediate"));
    };
    return driver;
  }
}
