import { type Kysely, PostgresAdapter } from "kysely";

/** The two databases that the store runs on. */
export type StoreDialect = "sqlite" | "postgres";

/** Which of them a handle or a transaction speaks. */
export function dialectOf<T>(db: Kysely<T>): StoreDialect {
  return db.getExecutor().adapter instanceof PostgresAdapter ? "postgres" : "sqlite";
}
