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

/**
 * SQLite on a thread of its own, behind the same query builder: better-sqlite3 blocks its thread, and the main one answers calls
 * (design §11). For long reads, retention in chunks and backups.
 */

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
    createDriver: () => new WorkerDriver(thread),
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  };
}

/** One connection: a transaction holds it, and everybody else waits. */
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
    // IMMEDIATE: another handle writes too, and a deferred transaction could not wait for it in the middle.
    await connection.executeQuery(CompiledQuery.raw("begin immediate"));
  }

  async commitTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw("commit"));
  }

  async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw("rollback"));
  }

  async releaseConnection(): Promise<void> {
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

/** A statement as it goes to the thread. */
export type ThreadStatement = Pick<CompiledQuery, "sql" | "parameters">;

export class StoreThread implements DatabaseConnection {
  readonly #options: WorkerOptions;
  readonly #pending = new Map<number, Pending>();
  #worker: Worker | null = null;
  #lastId = 0;

  constructor(options: WorkerOptions) {
    this.#options = options;
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    const { rows, changes } = await this.#run([query]);
    return { rows: rows as R[], ...(changes === null ? {} : { numAffectedRows: BigInt(changes) }) };
  }

  /**
   * All or none of them, in one transaction that begins and ends on the thread. One whose statements were sent one by one would
   * hold the write lock while it waits for the main thread, and that may just then be waiting for the lock.
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
    throw new Error("the store's worker does not stream; read in pages");
  }

  async close(): Promise<void> {
    await this.#worker?.terminate();
  }

  /** Started at the first query; one that died is replaced at the next. */
  #thread(): Worker {
    if (this.#worker) return this.#worker;
    // The same file beside this one, as a source under test and built in a release.
    const url = new URL(`./store-worker${extname(import.meta.url)}`, import.meta.url);
    const worker = new Worker(url, { workerData: this.#options });
    worker.unref();
    worker.on("message", (answer: WorkerAnswer) => this.#settle(answer));
    worker.on("error", (error) => this.#lost(worker, error));
    worker.on("exit", () => this.#lost(worker, new Error("the store's worker ended")));
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
