import { CompiledQuery, Kysely } from "kysely";
import { z } from "zod";
import { StoreThread, workerDialect } from "./worker-dialect.ts";

const BUSY_TIMEOUT_MS = 5000;
/** A damaged store can have one error per page. */
const MAX_FAULTS = 5;
const checkRows = z.array(z.object({ quick_check: z.string() }));

/** A consistent copy, made on a separate thread by a long read that blocks no one. */
export async function copySqlite(file: string, target: string): Promise<void> {
  await onThread(file, (db) => db.executeQuery(CompiledQuery.raw("vacuum into ?", [target])));
}

/** @returns SQLite's messages about damage in the file; empty if it is intact. */
export async function checkSqlite(file: string): Promise<readonly string[]> {
  const { rows } = await onThread(file, (db) =>
    db.executeQuery(CompiledQuery.raw(`pragma quick_check(${MAX_FAULTS})`)),
  );
  return checkRows.parse(rows).flatMap(({ quick_check: words }) => (words === "ok" ? [] : [words]));
}

async function onThread<T>(file: string, work: (db: Kysely<unknown>) => Promise<T>): Promise<T> {
  const db = new Kysely<unknown>({ dialect: workerDialect(new StoreThread({ file, busyTimeoutMs: BUSY_TIMEOUT_MS })) });
  try {
    return await work(db);
  } finally {
    await db.destroy();
  }
}
