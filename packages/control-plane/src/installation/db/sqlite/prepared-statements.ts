import type Sqlite from "better-sqlite3";

/** The number of recently used statements to keep. Hot paths repeat only a few. */
const MOST_KEPT = 128;
/** Other statements may invalidate prepared ones, so they are not kept and clear the cache. */
const KEPT = /^\s*(?:select|with|insert|update|delete|begin|commit|rollback)\b/i;

/**
 * Prepares each statement once, because preparing costs as much as running. A statement cannot run again while it is
 * iterated, so iterators must prepare their own.
 */
export class PreparedStatements {
  readonly #handle: Pick<Sqlite.Database, "prepare">;
  /** By text, least recently used first. */
  readonly #kept = new Map<string, Sqlite.Statement>();

  constructor(handle: Pick<Sqlite.Database, "prepare">) {
    this.#handle = handle;
  }

  /** For immediate use with `all`, `get` or `run`. @throws SqliteError if the SQL is invalid */
  prepare(sql: string): Sqlite.Statement {
    if (!KEPT.test(sql)) {
      this.#kept.clear();
      return this.#handle.prepare(sql);
    }
    const statement = this.#kept.get(sql) ?? this.#handle.prepare(sql);
    this.#kept.delete(sql);
    this.#kept.set(sql, statement);
    const [oldest = ""] = this.#kept.keys();
    if (this.#kept.size > MOST_KEPT) this.#kept.delete(oldest);
    return statement;
  }
}
