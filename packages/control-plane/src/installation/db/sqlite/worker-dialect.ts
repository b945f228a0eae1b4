import { extname } from "node:path";
import { Worker } from "node:worker_threads";
import {
  CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from "kysely";
import { withQuietRollback } from "../rollback.ts";

/** SQLite on a separate thread, behind the same query builder: better-sqlite3 blocks its thread. For long reads, chunked retention and backups. */

export type WorkerAnswer =
  | { readonly id: number; readonly ok: true; readonly rows: readonly unknown[]; readonly changes: number | null }
  | { readonly id: number; readonly ok: false; readonly message: string; readonly code: string };

export interface WorkerOptions {
  readonly file: string;
  readonly busyTimeoutMs: number;
}

export function workerDialect(thread: StoreThread): Dialect {
  return {
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => withQuietRollback(new WorkerDriver(thread)),
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  };
}

/** One connection; a transaction holds it while others wait. */
class WorkerDriver implements Driver {
  readonly #connection: StoreThread;
  #free: Promise<void> = Promise.resolve();
  #release: () => void = () => undefined;

  constructor(thread: StoreThread) {
    this.#connection = thread;
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<DatabaseConnection> {
    const before = this.#free;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#free = promise;
    await before;
    this.#release = resolve;
    return this.#connection;
  }

  async beginTransaction(connection: DatabaseConnection): Promise<void> {
    // IMMEDIATE: another handle also writes, and a deferred transaction could fail in the middle.
    await connection.executeQuery(CompiledQuery.raw("begin immediate"));
    this.#connection.stay();
  }

  async commitTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw("commit"));
  }

  async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw("rollback"));
  }

  async releaseConnection(): Promise<void> {
    this.#connection.leave();
    this.#release();
  }

  async destroy(): Promise<void> {
    await this.#connection.close();
  }
}

interface Pending {
  resolve(answer: Extract<WorkerAnswer, { ok: true }>): void;
  reject(error: Error): void;
}

/** A statement as sent to the thread. */
export type ThreadStatement = Pick<CompiledQuery, "sql" | "parameters">;

export class StoreThread implements DatabaseConnection {
  readonly #options: WorkerOptions;
  readonly #pending = new Map<number, Pending>();
  #worker: Worker | null = null;
  /** The running transaction; statements of others must not run inside it. */
  #bound: Worker | null = null;
  #lastId = 0;

  constructor(options: WorkerOptions) {
    this.#options = options;
  }

  /** A worker that exits is replaced until `leave`. */
  stay(): void {
    this.#bound = this.#worker;
  }

  leave(): void {
    this.#bound = null;
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    if (this.#bound !== null && this.#bound !== this.#worker) throw ended();
    const { rows, changes } = await this.#run([query]);
    return { rows: rows as R[], ...(changes === null ? {} : { numAffectedRows: BigInt(changes) }) };
  }

  /**
   * Runs all or none, in one transaction on the thread. Sending the statements one by one would hold the write lock while waiting
   * for the main thread, which may be waiting for the lock.
   */
  async executeTogether(statements: readonly ThreadStatement[]): Promise<void> {
    await this.#run(statements);
  }

  #run(statements: readonly ThreadStatement[]): Promise<Extract<WorkerAnswer, { ok: true }>> {
    const { promise, resolve, reject } = Promise.withResolvers<Extract<WorkerAnswer, { ok: true }>>();
    this.#lastId += 1;
    this.#pending.set(this.#lastId, { resolve, reject });
    const plain = statements.map(({ sql, parameters }) => ({ sql, parameters }));
    this.#thread().postMessage({ id: this.#lastId, statements: plain });
    return promise;
  }

  streamQuery(): AsyncIterableIterator<never> {
    throw new Error("the store's worker does not support streaming; read in pages");
  }

  async close(): Promise<void> {
    await this.#worker?.terminate();
  }

  /** Started at the first query, and replaced after it exits. */
  #thread(): Worker {
    if (this.#worker) return this.#worker;
    // Next to this file, both in source and in a build.
    const url = new URL(`./store-worker${extname(import.meta.url)}`, import.meta.url);
    const worker = new Worker(url, { workerData: this.#options });
    worker.unref();
    worker.on("message", (answer: WorkerAnswer) => this.#settle(answer));
    worker.on("error", (error) => this.#lost(worker, error));
    worker.on("exit", () => this.#lost(worker, ended()));
    this.#worker = worker;
    return worker;
  }

  #settle(answer: WorkerAnswer): void {
    const pending = this.#pending.get(answer.id);
    this.#pending.delete(answer.id);
    if (answer.ok) pending?.resolve(answer);
    else pending?.reject(Object.assign(new Error(answer.message), { code: answer.code }));
  }

  #lost(worker: Worker, error: unknown): void {
    if (this.#worker !== worker) return;
    this.#worker = null;
    const cause = error instanceof Error ? error : new Error(String(error));
    for (const pending of this.#pending.values()) pending.reject(cause);
    this.#pending.clear();
  }
}

function ended(): Error {
  return new Error("the store's worker ended");
}
