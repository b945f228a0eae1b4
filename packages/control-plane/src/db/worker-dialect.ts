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

export function workerDialect(options: WorkerOptions): Dialect {
  return {
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => new WorkerDriver(options),
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  };
}

/** One connection: a transaction holds it, and everybody else waits. */
class WorkerDriver implements Driver {
  readonly #connection: WorkerConnection;
  #free: Promise<void> = Promise.resolve();
  #release: () => void = () => undefined;

  constructor(options: WorkerOptions) {
    this.#connection = new WorkerConnection(options);
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

class WorkerConnection implements DatabaseConnection {
  readonly #options: WorkerOptions;
  readonly #pending = new Map<number, Pending>();
  #worker: Worker | null = null;
  #lastId = 0;

  constructor(options: WorkerOptions) {
    this.#options = options;
  }

  async executeQuery<R>({ sql, parameters }: CompiledQuery): Promise<QueryResult<R>> {
    const { promise, resolve, reject } = Promise.withResolvers<Extract<WorkerAnswer, { ok: true }>>();
    this.#lastId += 1;
    this.#pending.set(this.#lastId, { resolve, reject });
    this.#thread().postMessage({ id: this.#lastId, sql, parameters });
    const { rows, changes } = await promise;
    return { rows: rows as R[], ...(changes === null ? {} : { numAffectedRows: BigInt(changes) }) };
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
