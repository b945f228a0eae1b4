/** Classifies database errors, for SQLite (`SQLITE_…`) and PostgreSQL (SQLSTATE) alike. */

const UNIQUE = new Set(["SQLITE_CONSTRAINT_UNIQUE", "SQLITE_CONSTRAINT_PRIMARYKEY", "23505"]);
const FOREIGN_KEY = new Set(["SQLITE_CONSTRAINT_FOREIGNKEY", "23503"]);
const CHECK = new Set(["SQLITE_CONSTRAINT_CHECK", "23514"]);
const TIME_LIMIT = new Set(["55P03", "57014"]);
const UNSTORABLE = new Set(["22021", "22P05"]);
/** The store is temporarily unavailable. */
const AWAY = [
  // Lock timeout, disk full, I/O error, corrupt file.
  /^SQLITE_(BUSY|LOCKED|PROTOCOL|FULL|IOERR|CANTOPEN|READONLY|NOMEM|CORRUPT|NOTADB)/,
  // No connection, out of resources, shutdown, system error, password changed, database missing or dropped.
  /^(08|53|57P|58|28|3D000)/,
  // Read-only standby, lock or deadlock (retryable), connections refused, timeout, or another server took over.
  /^(25006|25P03|40001|40P01|55P03|55000|57014|FENCED)$/,
  /^(E(CONNREFUSED|CONNRESET|HOSTUNREACH|NETUNREACH|NOTFOUND|TIMEDOUT|PIPE)|EAI_AGAIN)$/,
];
/** Thrown by `pg` and the store's worker without a code. */
const AWAY_WORDS =
  /^(Connection terminated|timeout exceeded when trying to connect|Query read timeout|Client has encountered a connection error|the store's worker ended)/;
/** The server is shutting down, became read-only after a demotion, or ended the session. */
const UNUSABLE = /^(25006|25P03|08...|57P0.|58...|E[A-Z]+)$/;
const UNUSABLE_WORDS = /^(Connection terminated|Query read timeout|Client has encountered a connection error)/;

/** A row with this key exists. */
export function isUniqueViolation(error: unknown): boolean {
  return UNIQUE.has(codeOf(error));
}

/** Only the primary key: the row itself exists, not one that violates another constraint. */
export function isPrimaryKeyViolation(error: unknown): boolean {
  const code = codeOf(error);
  if (code !== "23505") return code === "SQLITE_CONSTRAINT_PRIMARYKEY";
  return error instanceof Error && "constraint" in error && String(error.constraint).endsWith("_pkey");
}

/** The row references a missing row, or is still referenced. */
export function isForeignKeyViolation(error: unknown): boolean {
  return FOREIGN_KEY.has(codeOf(error));
}

/** PostgreSQL cannot store NUL in text. Parsers at the edge reject it in lookups; this catches the rest. */
export function isUnstorableText(error: unknown): boolean {
  return UNSTORABLE.has(codeOf(error));
}

/** Why a reachable store accepts no writes, for people; null for other errors. */
export function storeFault(error: unknown): string | null {
  const code = codeOf(error);
  if (code === "SQLITE_FULL" || code === "53100") return "the store cannot write: disk full";
  if (code.startsWith("SQLITE_READONLY") || code === "25006") return "the store cannot write: it is read-only";
  if (code === "SQLITE_IOERR_WRITE" || code === "SQLITE_IOERR_FSYNC") return "the store cannot write: disk error";
  return null;
}

/** Neither the client's fault nor a bug: a retry may succeed. */
export function isStoreAway(error: unknown): boolean {
  const code = codeOf(error);
  return AWAY.some((codes) => codes.test(code)) || (error instanceof Error && AWAY_WORDS.test(error.message));
}

/** Further queries on this PostgreSQL connection would fail too, so it must not return to the pool. */
export function isConnectionUnusable(error: Error): boolean {
  return UNUSABLE.test(codeOf(error)) || UNUSABLE_WORDS.test(error.message);
}

/** A statement exceeded its time limit or its lock timeout. */
export function isTimeLimit(error: unknown): boolean {
  return TIME_LIMIT.has(codeOf(error));
}

/** A check constraint failed, such as a balance below zero. */
export function isCheckViolation(error: unknown): boolean {
  return CHECK.has(codeOf(error));
}

function codeOf(error: unknown): string {
  if (!(error instanceof Error) || !("code" in error)) return "";
  return typeof error.code === "string" ? error.code : "";
}
