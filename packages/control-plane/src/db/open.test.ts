import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql } from "kysely";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openDatabase } from "./open.ts";

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "fairlead-open-"));
});
afterEach(() => rmSync(dir, { recursive: true }));

test("the store's files can be read by their owner only", async () => {
  const file = join(dir, "store.db");
  const store = openDatabase({ file });
  await sql`create table t (a integer)`.execute(store.db);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(statSync(`${file}-wal`).mode & 0o777).toBe(0o600);
  await store.close();
});

test("an acknowledged write is on disk, and references are held", async () => {
  const store = openDatabase({ file: join(dir, "store.db") });
  const pragma = async (name: string): Promise<unknown> => {
    const { rows } = await sql.raw<Record<string, unknown>>(`pragma ${name}`).execute(store.db);
    return Object.values(rows[0] ?? {})[0];
  };
  expect(await pragma("journal_mode")).toBe("wal");
  expect(await pragma("synchronous")).toBe(2);
  expect(await pragma("foreign_keys")).toBe(1);
  await store.close();
});

test("a store that was never used can be closed, and closed twice", async () => {
  const store = openDatabase({ file: join(dir, "store.db") });
  await store.close();
  await expect(store.close()).resolves.toBeUndefined();
});

test("ping fails once the store is closed", async () => {
  const store = openDatabase({ file: ":memory:" });
  await store.ping();
  await store.close();
  await expect(store.ping()).rejects.toThrow();
});
