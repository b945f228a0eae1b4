import type { Kysely } from "kysely";
import type { Database } from "../db/schema.ts";

/**
 * Runs the writes of one create inside the transaction that they belong to, if they have not run before. Taking the key and keeping
 * the answer are writes of that transaction too: a crash leaves either all of it or nothing.
 */
export type Once<T> = (transaction: Kysely<Database>, make: () => Promise<T>) => Promise<T>;

/** For a call that carries no key. */
export async function always<T>(_transaction: Kysely<Database>, make: () => Promise<T>): Promise<T> {
  return make();
}
