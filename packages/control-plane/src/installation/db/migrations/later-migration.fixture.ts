import { type Kysely, sql } from "kysely";
import { MIGRATIONS, type Migration } from "./migrate.ts";

/** This program a release later: it knows one step more, until it is told to forget it. */
export class LaterRelease {
  static readonly step = "9999-later";
  /** Shared with all that migrates here. */
  readonly #migrations = MIGRATIONS as Migration[];

  begin(up: (db: Kysely<unknown>) => Promise<void> = addTable): void {
    this.#migrations.push({ name: LaterRelease.step, up });
  }

  end(): void {
    const at = this.#migrations.findIndex(({ name }) => name === LaterRelease.step);
    if (at !== -1) this.#migrations.splice(at, 1);
  }
}

async function addTable(db: Kysely<unknown>): Promise<void> {
  await sql`create table later (a integer)`.execute(db);
}
