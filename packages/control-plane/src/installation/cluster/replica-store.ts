import { type Kysely, sql } from "kysely";
import type { Database } from "../db/tables/schema.ts";

/** A start of a server that uses this database. */
export interface Replica {
  /** Of the data folder: the same after a restart. */
  readonly id: string;
  /** Of this start. */
  readonly incarnation: string;
  /** Where it runs; no two processes have the same at a time. */
  readonly place: string;
}

/** Another server's row, as the one that wants to start sees it. */
export interface OtherReplica {
  readonly incarnation: string;
  /** When it was last renewed, by PostgreSQL's clock; only to be compared for equality. */
  readonly seenAt: string;
}

/** Any number, as long as nothing else in the database uses it. */
const JOIN_LOCK = 7_203_116;

/** Rows of servers that run on a PostgreSQL. All times are PostgreSQL's own. */
export class ReplicaStore {
  readonly #db: Kysely<Database>;

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  /**
   * Makes `own` the only server of this database, unless others are in the way.
   * @param dead rows that were not renewed for a whole lease, as they were seen. @returns the others; none when `own` is in.
   */
  join(own: Replica, dead: readonly OtherReplica[]): Promise<readonly OtherReplica[]> {
    return this.#db.transaction().execute(async (transaction) => {
      // Before the table is made: two that make it at the same moment would fail.
      await sql`select pg_advisory_xact_lock(${sql.lit(JOIN_LOCK)})`.execute(transaction);
      await sql`create table if not exists replica (incarnation text primary key, id text not null, place text not null,
        started_at timestamptz not null default now(), seen_at timestamptz not null default now())`.execute(
        transaction,
      );
      const { rows } = await sql<OtherReplica & { isOwn: boolean }>`
        select incarnation, seen_at::text as "seenAt", id = ${own.id} and place = ${own.place} as "isOwn" from replica`.execute(
        transaction,
      );
      const isDead = (row: OtherReplica): boolean =>
        dead.some(({ incarnation, seenAt }) => incarnation === row.incarnation && seenAt === row.seenAt);
      const others = rows.filter((row) => !row.isOwn && !isDead(row));
      if (others.length > 0) return others.map(({ incarnation, seenAt }) => ({ incarnation, seenAt }));
      await sql`delete from replica`.execute(transaction);
      await sql`insert into replica (incarnation, id, place) values (${own.incarnation}, ${own.id}, ${own.place})`.execute(
        transaction,
      );
      return [];
    });
  }

  /** @returns false where another server has taken over. */
  async renew(incarnation: string): Promise<boolean> {
    const { numAffectedRows } =
      await sql`update replica set seen_at = now() where incarnation = ${incarnation}`.execute(this.#db);
    return numAffectedRows === 1n;
  }

  /** The incarnations of servers that run. */
  async living(): Promise<readonly string[]> {
    const { rows } = await sql<{ incarnation: string }>`select incarnation from replica`.execute(this.#db);
    return rows.map(({ incarnation }) => incarnation);
  }

  async leave(incarnation: string): Promise<void> {
    await sql`delete from replica where incarnation = ${incarnation}`.execute(this.#db);
  }
}
