/** What a database error means, the same for SQLite (`SQLITE_…`) and PostgreSQL (SQLSTATE). */

const UNIQUE = new Set(["SQLITE_CONSTRAINT_UNIQUE", "SQLITE_CONSTRAINT_PRIMARYKEY", "23505"]);
const FOREIGN_KEY = new Set(["SQLITE_CONSTRAINT_FOREIGNKEY", "23503"]);
const UNSTORABLE = new Set(["22021", "22P05"]);
/** The store cannot work just now: locked for too long, disk full, disk broken, connection lost. */
const AWAY =
  /^(SQLITE_(BUSY|FULL|IOERR|CANTOPEN|READONLY|NOMEM)|08|53|57P|E(CONNREFUSED|CONNRESET|NOTFOUND|TIMEDOUT|PIPE))/;
/** What `pg` throws without a code. */
const AWAY_WORDS = /^(Connection terminated|timeout exceeded when trying to connect)/;

/** A row with this key is there already. */
export function isUniqueViolation(error: unknown): boolean {
  return UNIQUE.has(codeOf(error));
}

/** The row points to one that is not there, or is still pointed to. */
export function isForeignKeyViolation(error: unknown): boolean {
  return FOREIGN_KEY.has(codeOf(error));
}

/** A text holds what PostgreSQL cannot (NUL): parsers at the edge refuse it in what is looked up, and this is the net below them. */
export function isUnstorableText(error: unknown): boolean {
  return UNSTORABLE.has(codeOf(error));
}

/** Not the caller's fault and not a bug: the same call may work later. */
export function isStoreAway(error: unknown): boolean {
  return AWAY.test(codeOf(error)) || (error instanceof Error && AWAY_WORDS.test(error.message));
}

function codeOf(error: unknown): string {
  if (!(error instanceof Error) || !("code" in error)) return "";
  return typeof error.code === "string" ? error.code : "";
}
