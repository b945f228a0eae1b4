import { join } from "node:path";
import { type Kysely, sql } from "kysely";
import { REPLICA_TABLE } from "./fence.ts";
import type { StoreLocation } from "./open.ts";
import { dumpPostgres, restorePostgres } from "./postgres/postgres-programs.ts";
import { copySqlite } from "./sqlite/copy-sqlite.ts";
import type { Database } from "./tables/schema.ts";

/** Copies of the whole store, whichever database it is. */

export interface StoreCopy {
  readonly name: "store.db" | "store.dump";
  readonly file: string;
}

/** Consistent as of one moment, while the store is in use. @param folder must have room for it. @throws StartError */
export async function copyStore(db: Kysely<Database>, location: StoreLocation, folder: string): Promise<StoreCopy> {
  if ("file" in location) {
    const copy: StoreCopy = { name: "store.db", file: join(folder, "store.db") };
    await copySqlite(location.file, copy.file);
    return copy;
  }
  const copy: StoreCopy = { name: "store.dump", file: join(folder, "store.dump") };
  await dumpPostgres(location.url, { schema: await currentSchema(db), file: copy.file });
  return copy;
}

/** Empties a PostgreSQL store and fills it from a dump. The caller has a dump of what was there. @throws StartError */
export async function refillPostgres(db: Kysely<Database>, url: string, file: string): Promise<void> {
  const schema = await currentSchema(db);
  const { rows } = await sql<{ name: string }>`
    select table_name as name from information_schema.tables
    where table_schema = ${schema} and table_name <> ${REPLICA_TABLE}`.execute(db);
  for (const { name } of rows) await sql`drop table if exists ${sql.id(schema, name)} cascade`.execute(db);
  await restorePostgres(url, { schema, file });
}

async function currentSchema(db: Kysely<Database>): Promise<string> {
  const { rows } = await sql<{ schema: string }>`select current_schema() as schema`.execute(db);
  return rows[0]?.schema ?? "public";
}
