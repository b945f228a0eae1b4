import { type Kysely, PostgresAdapter } from "kysely";

/** Supported databases. */
export type StoreDialect = "sqlite" | "postgres";

/** The dialect of a handle or transaction. */
export function dialectOf<T>(db: Kysely<T>): StoreDialect {
  return db.getExecutor().adapter instanceof PostgresAdapter ? "postgres" : "sqlite";
}
