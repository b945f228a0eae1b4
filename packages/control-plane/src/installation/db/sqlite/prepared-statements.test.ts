import Sqlite from "better-sqlite3";
import { sql } from "kysely";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openMemoryStore } from "../../../testing.fixture.ts";
import { PreparedStatements } from "./prepared-statements.ts";

describe("prepared statements", () => {
  let handle: Sqlite.Database;
  let prepared: string[];
  let statements: PreparedStatements;
  beforeEach(() => {
    handle = new Sqlite(":memory:");
    handle.exec("create table t (a integer); insert into t values (1), (2)");
    prepared = [];
    statements = new PreparedStatements({
      prepare: ((text: string) => {
        prepared.push(text);
        return handle.prepare(text);
      }) as Sqlite.Database["prepare"],
    });
  });
  afterEach(() => void handle.close());

  test("are prepared once per text, and run with new values each time", () => {
    for (const a of [1, 2, 3]) {
      expect(statements.prepare("select a from t where a = ?").all(a)).toEqual(a === 3 ? [] : [{ a }]);
    }
    expect(prepared).toHaveLength(1);
  });

  test("are limited in number: the most recently used ones are kept", () => {
    const often = "select 0";
    for (let n = 0; n < 1000; n++) {
      statements.prepare(`select ${n + 1}`);
      statements.prepare(often);
    }
    expect(prepared.filter((text) => text === often)).toHaveLength(1);
    const before = prepared.length;
    statements.prepare("select 1000");
    statements.prepare("select 1");
    expect(prepared.length - before).toBe(1);
  });

  test("see a table that was changed in between, including its new columns", () => {
    const all = "select * from t where a = 1";
    expect(statements.prepare(all).all()).toEqual([{ a: 1 }]);
    statements.prepare("alter table t add column b text default 'x'").run();
    expect(statements.prepare(all).all()).toEqual([{ a: 1, b: "x" }]);
    statements.prepare("drop table t").run();
    expect(() => statements.prepare(all)).toThrow(/no such table/);
  });

  test("that failed can be run again", () => {
    handle.exec("create unique index u on t (a)");
    const insert = "insert into t (a) values (?)";
    expect(() => statements.prepare(insert).run(1)).toThrow(/UNIQUE/);
    expect(statements.prepare(insert).run(3).changes).toBe(1);
  });
});

test("are not blocked by an abandoned stream of rows from the same statement", async () => {
  const store = await openMemoryStore();
  const numbers = sql<{ n: number }>`(select value as n from json_each('[1,2,3]'))`;
  const query = store.db.selectFrom(numbers.as("numbers")).select("n");
  for (let round = 0; round < 2; round++) {
    for await (const { n } of query.stream()) if (n === 2) break;
    expect(await query.execute()).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }]);
  }
  await store.close();
});
