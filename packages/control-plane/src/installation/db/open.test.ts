import { once } from "node:events";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { isStoreAway, storeFault } from "@fairlead/hosting/errors/store-errors";
import { TestClock } from "@fairlead/protocol/testing/test-clock";
import { type Kysely, sql } from "kysely";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { STORES } from "../../testing.fixture.ts";
import { migrate } from "./migrations/migrate.ts";
import { type OpenedDatabase, openDatabase } from "./open.ts";
import type { Database } from "./tables/schema.ts";

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "fairlead-open-"));
});
afterEach(() => rmSync(dir, { recursive: true }));

test("the store's files are readable only by their owner", async () => {
  const file = join(dir, "store.db");
  const store = openDatabase({ file });
  await sql`create table t (a integer)`.execute(store.db);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(statSync(`${file}-wal`).mode & 0o777).toBe(0o600);
  await store.close();
});

test("an acknowledged write is on disk, and references are enforced", async () => {
  const store = openDatabase({ file: join(dir, "store.db") });
  const pragma = async (name: string): Promise<unknown> => {
    const { rows } = await sql.raw<Record<string, unknown>>(`pragma ${name}`).execute(store.db);
    return Object.values(rows[0] ?? {})[0];
  };
  expect(await pragma("journal_mode")).toBe("wal");
  expect(await pragma("synchronous")).toBe(2);
  expect(await pragma("foreign_keys")).toBe(1);
  await store.close();
});

/** Holds the write lock of the file for a while, from when it says so; as another handle of the program does, on a thread of its own. */
const HOLD_LOCK = `
  const { parentPort, workerData } = require("node:worker_threads");
  const Sqlite = require(workerData.library);
  const handle = new Sqlite(workerData.file);
  handle.exec("begin immediate");
  parentPort.postMessage("held");
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200);
  handle.exec("commit");
  handle.close();
`;

test("a transaction that reads before it writes waits for another handle's write", async () => {
  const file = join(dir, "store.db");
  const store = openDatabase({ file });
  await sql`create table t (a integer)`.execute(store.db);
  const library = createRequire(import.meta.url).resolve("better-sqlite3");
  const other = new Worker(HOLD_LOCK, { eval: true, workerData: { file, library } });
  await once(other, "message");
  await store.db.transaction().execute(async (transaction) => {
    await sql`select * from t`.execute(transaction);
    await sql`insert into t values (1)`.execute(transaction);
  });
  const { rows } = await sql`select * from t`.execute(store.db);
  expect(rows).toEqual([{ a: 1 }]);
  await other.terminate();
  await store.close();
});

test("a store that was never used can be closed, even twice", async () => {
  const store = openDatabase({ file: join(dir, "store.db") });
  await store.close();
  await expect(store.close()).resolves.toBeUndefined();
});

test("ping fails once the store is closed", async () => {
  const store = openDatabase({ file: ":memory:" });
  await store.ping();
  await store.close();
  await expect(store.ping()).rejects.toThrow();
});

const postgres = STORES.filter(({ name }) => name === "PostgreSQL");

test.each(postgres)(
  "a connection that is cut while in use loses its transaction and nothing else",
  async ({ openEmpty }) => {
    const store = await openEmpty();
    const held = Promise.withResolvers<number>();
    const cut = Promise.withResolvers<void>();
    const transaction = store.db.transaction().execute(async (within) => {
      const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(within);
      held.resolve(rows[0]?.pid ?? 0);
      await cut.promise;
      await sql`select 1`.execute(within);
    });
    const outcome = transaction.catch((error: unknown) => error);
    // The signal's result waits for the end of that connection, so the break is there before the transaction goes on.
    await sql`select pg_terminate_backend(${await held.promise}, 5000)`.execute(store.db);
    cut.resolve();
    expect(await outcome).toSatisfy(isStoreAway);
    await expect(store.ping()).resolves.toBeUndefined();
    await store.close();
  },
);

describe("a store that cannot write", () => {
  let store: OpenedDatabase;
  beforeEach(async () => {
    store = openDatabase({ file: join(dir, "store.db") });
    await migrate(store.db, { clock: new TestClock() });
  });
  afterEach(() => store.close());

  const fill = (within: Kysely<Database>): Promise<unknown> =>
    sql`insert into installation (single, id, epoch, created_at) values (1, ${"x".repeat(1_000_000)}, 'e', 0)`.execute(
      within,
    );

  test("reports that the disk is full, not that the rollback failed", async () => {
    await sql`pragma max_page_count = 1`.execute(store.db);
    const failed = await store.db
      .transaction()
      .execute((transaction) => fill(transaction))
      .catch((error: unknown) => error);
    expect(storeFault(failed)).toBe("the store cannot write: disk full");
    expect(store.health.fault).toBe(failed);
    // The connection is good for the next transaction.
    await sql`pragma max_page_count = 1000000`.execute(store.db);
    await store.db.transaction().execute((transaction) => fill(transaction));
    expect(store.health.fault).toBeNull();
  });

  test("fails its ping until it can write again", async () => {
    await sql`pragma query_only = on`.execute(store.db);
    await expect(fill(store.db)).rejects.toThrow(/readonly/);
    await expect(store.ping()).rejects.toSatisfy((error) => storeFault(error) !== null);
    await sql`pragma query_only = off`.execute(store.db);
    await expect(store.ping()).resolves.toBeUndefined();
    expect(store.health.fault).toBeNull();
  });

  test("is also detected by writes on the store's own thread", async () => {
    await sql`pragma max_page_count = 1`.execute(store.writes);
    const big = sql`insert into installation (single, id, epoch, created_at) values (1, ${"x".repeat(1_000_000)}, 'e', 0)`;
    await expect(store.writeTogether([big.compile(store.db)])).rejects.toThrow(/full/);
    expect(storeFault(store.health.fault)).toBe("the store cannot write: disk full");
    await sql`pragma max_page_count = 1000000`.execute(store.writes);
    await store.writeTogether([big.compile(store.db)]);
    expect(store.health.fault).toBeNull();
  });
});
