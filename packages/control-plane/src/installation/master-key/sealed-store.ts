import { type Kysely, sql } from "kysely";
import { z } from "zod";
import type { SealedColumn } from "../../access/auth/sealing/sealed-column.ts";
import { SEALED_PREFIX } from "../../access/auth/sealing/sealer.ts";
import type { Database } from "../db/tables/schema.ts";
import { SEALED_COLUMNS } from "./sealed-columns.ts";

export interface SealedRow {
  readonly key: readonly string[];
  readonly context: string;
  readonly sealed: string;
}

const rowsSchema = z.array(z.record(z.string(), z.string()));

export class SealedStore {
  readonly #db: Kysely<Database>;

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  /** Values sealed by the master key, by primary key. Excludes secrets that only their node can open. */
  async page(place: SealedColumn, after: readonly string[] | null, limit: number): Promise<readonly SealedRow[]> {
    const { table, column, key, also, contextOf } = place;
    const columns = sql.join([...key, ...also, column].map((name) => sql.ref(name)));
    const keyColumns = sql.join(key.map((name) => sql.ref(name)));
    const from = after === null ? sql`` : sql` and (${keyColumns}) > (${sql.join(after)})`;
    const { rows } = await sql`select ${columns} from ${sql.table(table)}
      where ${sql.ref(column)} like ${`${SEALED_PREFIX}%`}${from} order by ${keyColumns} limit ${limit}`.execute(
      this.#db,
    );
    return rowsSchema.parse(rows).map((row) => ({
      key: key.map((name) => row[name] ?? ""),
      context: contextOf(row),
      sealed: row[column] ?? "",
    }));
  }

  async replace({ table, column, key }: SealedColumn, row: Pick<SealedRow, "key" | "sealed">): Promise<void> {
    const where = sql.join(
      key.map((name, at) => sql`${sql.ref(name)} = ${row.key[at] ?? ""}`),
      sql` and `,
    );
    await sql`update ${sql.table(table)} set ${sql.ref(column)} = ${row.sealed} where ${where}`.execute(this.#db);
  }

  /** The store's installation ID, and the ID of the key that seals it; null before anything is sealed. */
  async identity(): Promise<{ readonly installationId: string; readonly masterKeyId: string | null }> {
    const { id } = await this.#db.selectFrom("installation").select("id").executeTakeFirstOrThrow();
    const signing = this.#db.selectFrom("signing_key").select("master_key_id").where("retired_at", "is", null);
    return { installationId: id, masterKeyId: (await signing.executeTakeFirst())?.master_key_id ?? null };
  }

  /** Records which key seals everything. */
  async setMasterKey(id: string): Promise<void> {
    await this.#db.updateTable("signing_key").set({ master_key_id: id }).execute();
  }

  /** Deletes all sealed values, which can no longer be opened. @returns the names of what must be set again. */
  async forget(now: number): Promise<ForgottenSecrets> {
    const db = this.#db;
    await db.updateTable("signing_key").set({ sealed_jwk: "" }).execute();
    await db.updateTable("signing_key").set({ retired_at: now }).where("retired_at", "is", null).execute();
    await db.deleteFrom("kept_answer").where("sealed", "is not", null).execute();
    const machines = await db
      .updateTable("machine")
      .set({ sealed_token: null, sealed_bootstrap: null })
      .where("sealed_token", "is not", null)
      .returning("node_id")
      .execute();
    const providers = await db
      .updateTable("provider")
      .set({ sealed_credential: null })
      .where("sealed_credential", "is not", null)
      .returning(["project_id", "name"])
      .execute();
    const secrets = [...(await forgetSecrets(db, "node_secret")), ...(await forgetSecrets(db, "agent_secret"))];
    return {
      providers: providers.map((row) => ({ projectId: row.project_id, name: row.name })),
      secrets: [
        ...secrets.map((row) => ({ ownerId: row.owner_id, name: row.name })),
        ...machines.map((row) => ({ ownerId: row.node_id, name: "providerToken" })),
      ],
    };
  }
}

export interface ForgottenSecrets {
  readonly providers: readonly { readonly projectId: string; readonly name: string }[];
  /** Secrets of nodes and agents. */
  readonly secrets: readonly { readonly ownerId: string; readonly name: string }[];
}

/** Keeps secrets that only their node can open: the lost key does not affect them. */
async function forgetSecrets(
  db: Kysely<Database>,
  table: "node_secret" | "agent_secret",
): Promise<{ readonly owner_id: string; readonly name: string }[]> {
  return db
    .updateTable(table)
    .set({ deleted: 1, sealed: "", provider_key: 0 })
    .where("sealed_by", "=", "master")
    .where("deleted", "=", 0)
    .returning(["owner_id", "name"])
    .execute();
}

export interface SealedCount {
  readonly total: number;
  /** `table.column` with values sealed by another key. */
  readonly foreign: readonly { readonly place: string; readonly count: number }[];
}

/** Compares the key ID in each value; opens nothing. */
export async function countSealed(db: Kysely<Database>, keyId: string): Promise<SealedCount> {
  const foreign: { readonly place: string; readonly count: number }[] = [];
  let total = 0;
  for (const { table, column } of SEALED_COLUMNS) {
    const text = sql.ref<string>(column);
    const { rows } = await sql<{ sealed: number | string; others: number | string }>`
      select count(*) as sealed, coalesce(sum(case when ${text} like ${`${SEALED_PREFIX}${keyId}.%`} then 0 else 1 end), 0) as others
      from ${sql.table(table)} where ${text} like ${`${SEALED_PREFIX}%`}`.execute(db);
    total += Number(rows[0]?.sealed ?? 0);
    const count = Number(rows[0]?.others ?? 0);
    if (count > 0) foreign.push({ place: `${table}.${column}`, count });
  }
  return { total, foreign };
}
