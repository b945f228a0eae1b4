import { parentPort, workerData } from "node:worker_threads";
import Sqlite from "better-sqlite3";
import { z } from "zod";
import { PreparedStatements } from "./prepared-statements.ts";
import type { WorkerAnswer } from "./worker-dialect.ts";

/** The thread behind `worker-dialect.ts`: a dedicated SQLite handle that processes one message at a time. */

const { file, busyTimeoutMs } = z.object({ file: z.string(), busyTimeoutMs: z.number() }).parse(workerData);
const handle = new Sqlite(file, { timeout: busyTimeoutMs });
const prepared = new PreparedStatements(handle);
handle.pragma("synchronous = FULL");
handle.pragma("foreign_keys = ON");

// Elements are not checked: for batches of thousands that costs more than the transfer.
const parametersSchema = z.custom<readonly unknown[]>(Array.isArray);
const statementSchema = z.object({ sql: z.string(), parameters: parametersSchema });
const requestSchema = z.object({ id: z.number(), statements: z.array(statementSchema) });

type Result = Omit<WorkerAnswer & { ok: true }, "id" | "ok">;

parentPort?.on("message", (message: unknown) => {
  const { id, statements } = requestSchema.parse(message);
  parentPort?.postMessage(answer(id, () => runAll(statements)));
});

/** Runs one statement directly, several in a transaction. */
function runAll(statements: readonly z.infer<typeof statementSchema>[]): Result {
  const runEach = (): Result => {
    let result: Result = { rows: [], changes: null };
    for (const { sql, parameters } of statements) result = run(sql, parameters);
    return result;
  };
  return statements.length === 1 ? runEach() : handle.transaction(runEach).immediate();
}

function run(sql: string, parameters: readonly unknown[]): Result {
  const statement = prepared.prepare(sql);
  if (statement.reader) return { rows: statement.all(...parameters), changes: null };
  return { rows: [], changes: statement.run(...parameters).changes };
}

function answer(id: number, work: () => Result): WorkerAnswer {
  try {
    return { id, ok: true, ...work() };
  } catch (error) {
    const code = error instanceof Sqlite.SqliteError ? error.code : "";
    return { id, ok: false, message: error instanceof Error ? error.message : String(error), code };
  }
}
