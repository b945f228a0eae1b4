import type { Clock } from "@fairlead/protocol/values/clock";
import { type Kysely, sql } from "kysely";
import { StartError } from "../../process/start-error.ts";
import { dialectOf } from "../dialect.ts";
import * as initial from "./0001-initial.ts";

/** One schema step. Names sort in order. */
export interface Migration {
  readonly name: string;
  up(db: Kysely<unknown>): Promise<void>;
}

export const MIGRATIONS: readonly Migration[] = [{ name: "0001-initial", up: initial.up }];

/**
 * Migrates the store in one transaction. Concurrent programs wait for one another.
 * @returns names of the migrations applied now.
 * @throws StartError if the store was written by a newer version.
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
      // A failed rollback must not hide the first error.
      await sql`rollback`.execute(db).catch(() => undefined);
      throw error;
    }
  });
}

/** The store's schema compared with this program's. */
export interface MigrationState {
  /** Names, in order; empty for a new store. */
  readonly applied: readonly string[];
  readonly missing: readonly string[];
}

/** Reads only. @throws StartError if the store was written by a newer version. */
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

/** IMMEDIATE: Kysely's own migrator has no lock on SQLite, and a deferred transaction would fail halfway. */
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

/** Any number that nothing else in the database uses. */
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

/** @param done names of applied migrations. @throws StartError if one is unknown */
export function refuseNewerStore(done: ReadonlySet<string>, migrations: readonly Migration[] = MIGRATIONS): void {
  const known = new Set(migrations.map((migration) => migration.name));
  const unknown = [...done].filter((name) => !known.has(name)).toSorted();
  if (unknown.length === 0) return;
  throw new StartError(
    `The store was written by a newer version of Fairlead (it contains ${unknown.join(", ")}). ` +
      "Start that version, or return to this one by restoring the backup that was taken before the upgrade. It is in the folder " +
      "backups of the data folder; see `fairlead restore --help`.",
  );
}
