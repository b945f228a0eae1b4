/** What a database error means, the same for SQLite (`SQLITE_…`) and PostgreSQL (SQLSTATE). */

const UNIQUE = new Set(["SQLITE_CONSTRAINT_UNIQUE", "SQLITE_CONSTRAINT_PRIMARYKEY", "23505"]);
const FOREIGN_KEY = new Set(["SQLITE_CONSTRAINT_FOREIGNKEY", "23503"]);
const UNSTORABLE = new Set(["22021", "22P05"]);
/** The store cannot work just now. */
const AWAY = [
  // Locked for too long, disk full, disk or file broken.
  /^SQLITE_(BUSY|LOCKED|PROTOCOL|FULL|IOERR|CANTOPEN|READONLY|NOMEM|CORRUPT|NOTADB)/,
  // No connection, no room, shutting down, a fault of its system, its password changed under us, no such database (any more).
  /^(08|53|57P|58|28|3D000)/,
  // A standby that only reads, a lock or a deadlock that the same call may be spared, a database that takes nobody in.
  /^(25006|40001|40P01|55P03|55000)$/,
  /^(E(CONNREFUSED|CONNRESET|HOSTUNREACH|NETUNREACH|NOTFOUND|TIMEDOUT|PIPE)|EAI_AGAIN)$/,
];
/** What `pg` and the store's worker throw without a code. */
const AWAY_WORDS =
  /^(Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error|the store's worker ended)/;

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
  const code = codeOf(error);
  return AWAY.some((codes) => codes.test(code)) || (error instanceof Error && AWAY_WORDS.test(error.message));
}

function codeOf(error: unknown): string {
  if (!(error instanceof Error) || !("code" in error)) return "";
  return typeof error.code === "string" ? error.code : "";
}
