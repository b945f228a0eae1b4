import type Sqlite from "better-sqlite3";

/** Statements that are kept; those that were used last. Hot paths repeat few. */
const MOST_KEPT = 128;
/** Of others, which may change what a prepared one means, nothing is kept, and nothing that is older. */
const KEPT = /^\s*(?:select|with|insert|update|delete|begin|commit|rollback)\b/i;

/**
 * Prepares each statement once: it costs about what it costs to run one. A statement that is being iterated cannot run a second
 * time meanwhile; whoever iterates prepares their own.
 */
export class PreparedStatements {
  readonly #handle: Pick<Sqlite.Database, "prepare">;
  /** By text, in the order of use. */
  readonly #kept = new Map<string, Sqlite.Statement>();

  constructor(handle: Pick<Sqlite.Database, "prepare">) {
    this.#handle = handle;
  }

  /** To be run at once: `all`, `get` or `run`. @throws SqliteError where it is no statement */
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
