import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { TestClock } from "@fairlead/protocol/testing/test-clock";
import { getMigrations } from "better-auth/db/migration";
import { type Kysely, sql } from "kysely";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { insertUser, openMemoryStore, STORES } from "../../../testing.fixture.ts";
import { dialectOf } from "../dialect.ts";
import type { OpenedDatabase } from "../open.ts";
import { MIGRATIONS, type Migration, migrate } from "./migrate.ts";

const clock = new TestClock();
const one: Migration = { name: "0001-one", up: (db) => run(db, "create table one (a integer)") };
const two: Migration = { name: "0002-two", up: (db) => run(db, "create table two (a integer)") };

async function run(db: Kysely<unknown>, statement: string): Promise<void> {
  await sql.raw(statement).execute(db);
}

/** Of the store's own schema: other tests have theirs in the same PostgreSQL. */
async function tables({ db }: OpenedDatabase): Promise<string[]> {
  const found = await db.introspection.getTables();
  if (dialectOf(db) === "sqlite") return found.map(({ name }) => name).toSorted();
  const { rows } = await sql<{ own: string }>`select current_schema() as own`.execute(db);
  return found.flatMap(({ name, schema }) => (schema === rows[0]?.own ? [name] : [])).toSorted();
}

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "fairlead-migrate-"));
});
afterEach(() => rmSync(dir, { recursive: true }));

describe.each(STORES)("migrate on $name", ({ openEmpty, openShared }) => {
  test("applies the missing steps in order, once", async () => {
    const store = await openEmpty();
    expect(await migrate(store.db, { clock, migrations: [one] })).toEqual(["0001-one"]);
    expect(await migrate(store.db, { clock, migrations: [one, two] })).toEqual(["0002-two"]);
    expect(await migrate(store.db, { clock, migrations: [one, two] })).toEqual([]);
    expect(await tables(store)).toEqual(["one", "schema_migration", "two"]);
    await store.close();
  });

  test("applies a step that was inserted between steps that the store has already run", async () => {
    const store = await openEmpty();
    const three: Migration = { name: "0003-three", up: (db) => run(db, "create table three (a integer)") };
    await migrate(store.db, { clock, migrations: [one, three] });
    expect(await migrate(store.db, { clock, migrations: [one, two, three] })).toEqual(["0002-two"]);
    expect(await tables(store)).toEqual(["one", "schema_migration", "three", "two"]);
    await store.close();
  });

  test("leaves the store unchanged when one step fails", async () => {
    const store = await openEmpty();
    const broken: Migration = { name: "0002-broken", up: (db) => run(db, "create nonsense") };
    await expect(migrate(store.db, { clock, migrations: [one, broken] })).rejects.toThrow(/nonsense/);
    expect(await tables(store)).toEqual([]);
    expect(await migrate(store.db, { clock, migrations: [one, two] })).toHaveLength(2);
    await store.close();
  });

  test("upgrades a store of this version to a later one, with all of its data", async () => {
    const store = await openEmpty();
    await migrate(store.db, { clock });
    await insertUser(store, "usr_1");
    const later: Migration = { name: "9999-later", up: (db) => run(db, `alter table "user" add column later integer`) };
    expect(await migrate(store.db, { clock, migrations: [...MIGRATIONS, later] })).toEqual(["9999-later"]);
    const { rows } = await sql`select id, later from "user"`.execute(store.db);
    expect(rows).toEqual([{ id: "usr_1", later: null }]);
    await store.close();
  });

  test("refuses a store that a newer program wrote, and names the unknown steps", async () => {
    const store = await openEmpty();
    await migrate(store.db, { clock, migrations: [one, two] });
    await expect(migrate(store.db, { clock, migrations: [one] })).rejects.toThrow(/newer version.*0002-two/);
    await store.close();
  });

  test("runs once when several programs start it at the same time, and all of them continue", async () => {
    const shared = await openShared(dir);
    const program = `
      import { systemClock } from "@fairlead/protocol/values/clock";
      import { migrate } from "./migrate.ts";
      import { openDatabase } from "../open.ts";
      const store = openDatabase(JSON.parse(process.argv[1]));
      // SQLite's thread cannot start in a program that comes by --eval.
      const handle = process.argv[1].includes("url") ? store.maintenance : store.db;
      const applied = await migrate(handle, { clock: systemClock });
      process.stdout.write(String(applied.length));
      await store.close();`;
    const results = await Promise.all(
      Array.from({ length: 3 }, () => runProgram(program, JSON.stringify(shared.location))),
    );
    await shared.close();
    expect(results.toSorted()).toEqual(["0", "0", String(MIGRATIONS.length)]);
  }, 30_000);
});

async function runProgram(source: string, argument: string): Promise<string> {
  const args = ["--conditions=fairlead-source", "--input-type=module", "--eval", source, argument];
  const child = spawn(process.execPath, args, { cwd: import.meta.dirname, stdio: ["ignore", "pipe", "inherit"] });
  const output = child.stdout.toArray();
  const [code] = await once(child, "exit");
  return code === 0 ? Buffer.concat(await output).toString() : `exit ${String(code)}`;
}

test("the sign-in library finds its tables as it would create them", async () => {
  const store = await openMemoryStore();
  const plan = await getMigrations({
    database: { db: store.db, type: "sqlite" },
    emailAndPassword: { enabled: true },
    user: { additionalFields: { platformAdmin: { type: "boolean", required: false } } },
  });
  expect({ ...plan, runMigrations: null, compileMigrations: null }).toMatchObject({
    toBeCreated: [],
    toBeAdded: [],
    toBeAddedIndexes: [],
    unsafeChanges: [],
    schemaProblems: [],
  });
  await store.close();
});
