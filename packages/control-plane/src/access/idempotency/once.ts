import type { Kysely } from "kysely";
import type { Database } from "../../installation/db/tables/schema.ts";

/**
 * Runs a create's writes in their transaction unless they have run before. Taking the key and storing the response
 * belong to the same transaction, so a crash leaves all or nothing.
 */
export type Once<T> = (transaction: Kysely<Database>, make: () => Promise<T>) => Promise<T>;

/** For a request without a key. */
export async function always<T>(_transaction: Kysely<Database>, make: () => Promise<T>): Promise<T> {
  return make();
}
