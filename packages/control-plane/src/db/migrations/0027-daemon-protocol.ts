import { type Kysely, sql } from "kysely";

/** Which version of the link each node's daemon was last agreed on; null until it is heard: a node's agents are told to those that know them. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw(`alter table node add column daemon_protocol integer`).execute(db);
}
