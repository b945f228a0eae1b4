import type { Clock } from "@fairlead/protocol/clock";
import { type Kysely, sql } from "kysely";
import { StartError } from "../start-error.ts";
import { dialectOf } from "./dialect.ts";
import * as initial from "./migrations/0001-initial.ts";
import * as idempotency from "./migrations/0002-idempotency.ts";
import * as oauth from "./migrations/0003-oauth.ts";
import * as oneTimeLinks from "./migrations/0004-one-time-links.ts";
import * as keyLimits from "./migrations/0005-key-limits.ts";
import * as audit from "./migrations/0006-audit.ts";
import * as projects from "./migrations/0007-projects.ts";
import * as providers from "./migrations/0008-providers.ts";
import * as billing from "./migrations/0009-billing.ts";
import * as usage from "./migrations/0010-usage.ts";
import * as answers from "./migrations/0011-answers.ts";
import * as chat from "./migrations/0012-chat.ts";
import * as secretVersions from "./migrations/0013-secret-versions.ts";
import * as nodeConditions from "./migrations/0014-node-conditions.ts";
import * as nodeLife from "./migrations/0015-node-life.ts";
import * as desiredDaemons from "./migrations/0016-desired-daemons.ts";
import * as machines from "./migrations/0025-machines.ts";
import * as agents from "./migrations/0026-agents.ts";
import * as daemonProtocol from "./migrations/0027-daemon-protocol.ts";
import * as agentSecrets from "./migrations/0028-agent-secrets.ts";
import * as agentMoney from "./migrations/0029-agent-money.ts";

/** One step of the schema, named so that the names sort in their order. */
export interface Migration {
  readonly name: string;
  up(db: Kysely<unknown>): Promise<void>;
}

export const MIGRATIONS: readonly Migration[] = [
  { name: "0001-initial", up: initial.up },
  { name: "0002-idempotency", up: idempotency.up },
  { name: "0003-oauth", up: oauth.up },
  { name: "0004-one-time-links", up: oneTimeLinks.up },
  { name: "0005-key-limits", up: keyLimits.up },
  { name: "0006-audit", up: audit.up },
  { name: "0007-projects", up: projects.up },
  { name: "0008-providers", up: providers.up },
  { name: "0009-billing", up: billing.up },
  { name: "0010-usage", up: usage.up },
  { name: "0011-answers", up: answers.up },
  { name: "0012-chat", up: chat.up },
  { name: "0013-secret-versions", up: secretVersions.up },
  { name: "0014-node-conditions", up: nodeConditions.up },
  { name: "0015-node-life", up: nodeLife.up },
  { name: "0016-desired-daemons", up: desiredDaemons.up },
  { name: "0025-machines", up: machines.up },
  { name: "0026-agents", up: agents.up },
  { name: "0027-daemon-protocol", up: daemonProtocol.up },
  { name: "0028-agent-secrets", up: agentSecrets.up },
  { name: "0029-agent-money", up: agentMoney.up },
];

/**
 * Brings the store to this program's schema, in one transaction. Several programs at once: one works, the others wait and find it done.
 * @returns names of the migrations that were applied now.
 * @throws StartError when the store was written by a newer program.
 */
export async function migrate<T>(store: Kysely<T>, options: MigrateOptions): Promise<readonly string[]> {
  const { clock, migrations = MIGRATIONS } = options;
  return store.connection().execute(async (connection) => {
    const db = connection as unknown as Kysely<Tables>;
    await beginExclusive(db);
    try {
      const applied = await applyMissing(db, migrations, clock.now());
      await sql`commit`.execute(db);
      return applied;
    } catch (error) {
      await sql`rollback`.execute(db);
      throw error;
    }
  });
}

/** How a store stands to this program's schema. */
export interface MigrationState {
  /** Names, in their order; none for a new store. */
  readonly applied: readonly string[];
  readonly missing: readonly string[];
}

/** Reads only. @throws StartError when the store was written by a newer program. */
export async function migrationState<T>(
  store: Kysely<T>,
  migrations: readonly Migration[] = MIGRATIONS,
): Promise<MigrationState> {
  const db = store as unknown as Kysely<Tables>;
  const applied = (await hasMigrations(db)) ? await appliedNames(db) : [];
  refuseNewerStore(new Set(applied), migrations);
  const missing = migrations.flatMap(({ name }) => (applied.includes(name) ? [] : [name]));
  return { applied, missing };
}

async function hasMigrations(db: Kysely<Tables>): Promise<boolean> {
  const found =
    dialectOf(db) === "sqlite"
      ? sql`select 1 from sqlite_master where type = 'table' and name = 'schema_migration'`
      : sql`select 1 from information_schema.tables
          where table_schema = current_schema() and table_name = 'schema_migration'`;
  return (await found.execute(db)).rows.length > 0;
}

async function appliedNames(db: Kysely<Tables>): Promise<string[]> {
  const rows = await db.selectFrom("schema_migration").select("name").orderBy("name").execute();
  return rows.map((row) => row.name);
}

/** IMMEDIATE, since SQLite has no lock that Kysely's own migrator could use, and a deferred one would fail in the middle. */
async function beginExclusive(db: Kysely<Tables>): Promise<void> {
  if (dialectOf(db) === "sqlite") {
    await sql`begin immediate`.execute(db);
    return;
  }
  await sql`begin`.execute(db);
  await sql`select pg_advisory_xact_lock(${sql.lit(MIGRATION_LOCK)})`.execute(db);
}

export interface MigrateOptions {
  readonly clock: Clock;
  readonly migrations?: readonly Migration[];
}

/** Any number, as long as nothing else in the database uses it. */
const MIGRATION_LOCK = 7_203_115;

interface Tables {
  schema_migration: { name: string; applied_at: number };
}

async function applyMissing(
  db: Kysely<Tables>,
  migrations: readonly Migration[],
  now: number,
): Promise<readonly string[]> {
  await sql`create table if not exists schema_migration (name text primary key, applied_at bigint not null)`.execute(
    db,
  );
  const done = new Set(await appliedNames(db));
  refuseNewerStore(done, migrations);
  const missing = migrations.filter((migration) => !done.has(migration.name));
  for (const migration of missing) {
    await migration.up(db as unknown as Kysely<unknown>);
    await db.insertInto("schema_migration").values({ name: migration.name, applied_at: now }).execute();
  }
  return missing.map((migration) => migration.name);
}

/** @param done names of migrations that a store has run. @throws StartError where one is unknown here */
export function refuseNewerStore(done: ReadonlySet<string>, migrations: readonly Migration[] = MIGRATIONS): void {
  const known = new Set(migrations.map((migration) => migration.name));
  const unknown = [...done].filter((name) => !known.has(name)).toSorted();
  if (unknown.length === 0) return;
  throw new StartError(
    `The store was written by a newer version of Fairlead (it holds ${unknown.join(", ")}). ` +
      "Start that version; or go back to this one by the backup that was taken before the upgrade: it lies in the folder " +
      "backups of the data folder, see `fairlead restore --help`.",
  );
}
