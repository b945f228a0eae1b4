import { type Kysely, sql } from "kysely";
import { z } from "zod";
import { answerName } from "../answers/kept-answer.ts";
import { signingKeyContext } from "../auth/key-ring.ts";
import { SEALED_PREFIX } from "../auth/sealer.ts";
import type { Database } from "../db/schema.ts";
import { bootstrapContext, tokenContext } from "../machines/machine.ts";
import { credentialContext } from "../providers/provider-credentials.ts";
import { secretContext } from "../secrets/secret.ts";

/** One place in the store that the master key seals. */
export interface SealedColumn {
  readonly table: keyof Database;
  readonly column: string;
  /** Primary key, in its order. */
  readonly key: readonly string[];
  /** What else the context is made of. */
  readonly also: readonly string[];
  /** What a row's value is sealed under. */
  readonly contextOf: (row: Readonly<Record<string, string>>) => string;
}

/** Every one of them; a test holds the list against the schema and against whoever seals. */
export const SEALED_COLUMNS: readonly SealedColumn[] = [
  {
    table: "signing_key",
    column: "sealed_jwk",
    key: ["id"],
    also: [],
    contextOf: ({ id = "" }) => signingKeyContext(id),
  },
  {
    table: "provider",
    column: "sealed_credential",
    key: ["project_id", "name"],
    also: ["base_url"],
    contextOf: ({ project_id: projectId = "", name = "", base_url: baseUrl = "" }) =>
      credentialContext({ projectId, name, baseUrl }),
  },
  ...(["node", "agent"] as const).map(
    (kind): SealedColumn => ({
      table: `${kind}_secret`,
      column: "sealed",
      key: ["owner_id", "name"],
      also: [],
      contextOf: ({ owner_id: ownerId = "", name = "" }) => secretContext(kind, { ownerId, name }),
    }),
  ),
  {
    table: "kept_answer",
    column: "sealed",
    key: ["project_id", "caller_id", "key"],
    also: [],
    contextOf: ({ project_id: projectId = "", caller_id: callerId = "", key = "" }) =>
      answerName({ projectId, callerId, key }),
  },
  {
    table: "machine",
    column: "sealed_token",
    key: ["node_id"],
    also: [],
    contextOf: ({ node_id: nodeId = "" }) => tokenContext(nodeId),
  },
  {
    table: "machine",
    column: "sealed_bootstrap",
    key: ["node_id"],
    also: [],
    contextOf: ({ node_id: nodeId = "" }) => bootstrapContext(nodeId),
  },
];

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

  /** What the master key sealed, by its primary key; a secret that only its node can open is none of it. */
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

  /** Of this store; and by which key it is sealed, null before anything is. */
  async identity(): Promise<{ readonly installationId: string; readonly masterKeyId: string | null }> {
    const { id } = await this.#db.selectFrom("installation").select("id").executeTakeFirstOrThrow();
    const signing = this.#db.selectFrom("signing_key").select("master_key_id").where("retired_at", "is", null);
    return { installationId: id, masterKeyId: (await signing.executeTakeFirst())?.master_key_id ?? null };
  }

  /** Says by which key everything is sealed now. */
  async setMasterKey(id: string): Promise<void> {
    await this.#db.updateTable("signing_key").set({ master_key_id: id }).execute();
  }

  /** Gives up all that is sealed: nobody can open it any more. @returns what has to be set again, by name. */
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
  /** Of nodes and of agents. */
  readonly secrets: readonly { readonly ownerId: string; readonly name: string }[];
}

/** Only its node can open another one, so the lost key is no loss for it. */
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
