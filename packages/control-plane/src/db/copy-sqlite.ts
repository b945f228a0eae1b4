import { CompiledQuery, Kysely } from "kysely";
import { z } from "zod";
import { StoreThread, workerDialect } from "./worker-dialect.ts";

const BUSY_TIMEOUT_MS = 5000;
/** A broken store has as many faults as it has pages. */
const MAX_FAULTS = 5;
const checkRows = z.array(z.object({ quick_check: z.string() }));

/** A whole copy as of one moment, made beside everybody else's work on a thread of its own: a long read and nobody's wait (design §11). */
export async function copySqlite(file: string, target: string): Promise<void> {
  await onThread(file, (db) => db.executeQuery(CompiledQuery.raw("vacuum into ?", [target])));
}

/** @returns what is broken in the file, in SQLite's words; nothing for a whole one. */
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
