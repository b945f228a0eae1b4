import { parentPort, workerData } from "node:worker_threads";
import Sqlite from "better-sqlite3";
import { z } from "zod";
import type { WorkerAnswer } from "./worker-dialect.ts";

/** The thread behind `worker-dialect.ts`: one SQLite handle of its own, one statement at a time. */

const { file, busyTimeoutMs } = z.object({ file: z.string(), busyTimeoutMs: z.number() }).parse(workerData);
const handle = new Sqlite(file, { timeout: busyTimeoutMs });
handle.pragma("synchronous = FULL");
handle.pragma("foreign_keys = ON");

const requestSchema = z.object({ id: z.number(), sql: z.string(), parameters: z.array(z.unknown()) });

parentPort?.on("message", (message: unknown) => {
  const { id, sql, parameters } = requestSchema.parse(message);
  parentPort?.postMessage(answer(id, () => run(sql, parameters)));
});

function run(sql: string, parameters: readonly unknown[]): Omit<WorkerAnswer & { ok: true }, "id" | "ok"> {
  const statement = handle.prepare(sql);
  if (statement.reader) return { rows: statement.all(...parameters), changes: null };
  return { rows: [], changes: statement.run(...parameters).changes };
}

function answer(id: number, work: () => ReturnType<typeof run>): WorkerAnswer {
  try {
    return { id, ok: true, ...work() };
  } catch (error) {
    const code = error instanceof Sqlite.SqliteError ? error.code : "";
    return { id, ok: false, message: error instanceof Error ? error.message : String(error), code };
  }
}
