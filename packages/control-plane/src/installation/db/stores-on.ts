import type { Kysely } from "kysely";
import type { Database } from "./tables/schema.ts";

/** The stores of a room, on one handle or inside one transaction. */
export type Stores<T> = T & {
  transaction<R>(work: (stores: Stores<T>, transaction: Kysely<Database>) => Promise<R>): Promise<R>;
};

export function storesOn<T extends object>(db: Kysely<Database>, open: (db: Kysely<Database>) => T): Stores<T> {
  return {
    ...open(db),
    transaction: (work) => db.transaction().execute((transaction) => work(storesOn(transaction, open), transaction)),
  };
}
