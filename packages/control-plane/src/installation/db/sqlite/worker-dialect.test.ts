import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isUniqueViolation } from "@fairlead/hosting/errors/store-errors";
import { TestClock } from "@fairlead/protocol/testing/test-clock";
import { type CompiledQuery, Kysely, sql } from "kysely";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { insertUser } from "../../../testing.fixture.ts";
import { migrate } from "../migrations/migrate.ts";
import { type OpenedDatabase, openDatabase } from "../open.ts";
import type { Database } from "../tables/schema.ts";
import { StoreThread, workerDialect } from "./worker-dialect.ts";

let dir: string;
let store: OpenedDatabase;
beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), "fairlead-worker-"));
  store = openDatabase({ file: join(dir, "store.db") });
  await migrate(store.db, { clock: new TestClock() });
});
afterEach(async () => {
  await store.close();
  rmSync(dir, { recursive: true });
});

const ENDLESS = sql`with recursive n(x) as (select 1 union all select x + 1 from n where x < 3000000) select max(x) as top from n`;

describe("the store's worker", () => {
  test("sees the main thread's writes, and the main thread sees its writes", async () => {
    await insertUser(store, "usr_a");
    const users = await store.longReads.selectFrom("user").select("id").execute();
    expect(users).toEqual([{ id: "usr_a" }]);
    const { numDeletedRows } = await store.longReads.deleteFrom("user").executeTakeFirst();
    expect(numDeletedRows).toBe(1n);
    expect(await store.db.selectFrom("user").selectAll().execute()).toEqual([]);
  });

  test("writes several statements together or not at all, whatever the main thread writes meanwhile", async () => {
    const user = (id: string): CompiledQuery =>
      sql`insert into "user" (id, name, email, "emailVerified", "createdAt", "updatedAt") values (${id}, '', ${id}, 0, '', '')`.compile(
        store.db,
      );
    const ids = async (): Promise<string[]> =>
      (await store.db.selectFrom("user").select("id").orderBy("id").execute()).map(({ id }) => id);
    const together = store.writeTogether([user("usr_b"), user("usr_c")]);
    await store.db.transaction().execute((transaction) => transaction.executeQuery(user("usr_d")));
    await together;
    expect(await ids()).toEqual(["usr_b", "usr_c", "usr_d"]);
    await expect(store.writeTogether([user("usr_e"), user("usr_b")])).rejects.toSatisfy(isUniqueViolation);
    expect(await ids()).toEqual(["usr_b", "usr_c", "usr_d"]);
  });

  test("leaves the main thread free during a long read", async () => {
    let ended = false;
    const long = ENDLESS.execute(store.longReads).finally(() => {
      ended = true;
    });
    let turns = 0;
    while (!ended) {
      await store.ping();
      turns += 1;
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect((await long).rows).toEqual([{ top: 3_000_000 }]);
    expect(turns).toBeGreaterThan(10);
  });

  test("runs one transaction at a time, and rolls back one that fails", async () => {
    const failing = store.longReads.transaction().execute(async (tx) => {
      await tx.insertInto("installation").values({ single: 1, id: "ins_1", epoch: "e", created_at: 0 }).execute();
      throw new Error("no");
    });
    const after = store.longReads.selectFrom("installation").selectAll().execute();
    await expect(failing).rejects.toThrow("no");
    expect(await after).toEqual([]);
  });

  test("reports a constraint violation by its code, as the main thread's handle does", async () => {
    const row = { single: 1, id: "ins_1", epoch: "e", created_at: 0 };
    await store.longReads.insertInto("installation").values(row).execute();
    const again = await store.longReads
      .insertInto("installation")
      .values(row)
      .execute()
      .catch((error: unknown) => error);
    expect(isUniqueViolation(again)).toBe(true);
  });

  test("that ends during a transaction rolls back all of it, and executes nothing outside it", async () => {
    const thread = new StoreThread({ file: join(dir, "store.db"), busyTimeoutMs: 1000 });
    const db = new Kysely<Database>({ dialect: workerDialect(thread) });
    const row = { single: 1, id: "ins_1", epoch: "e", created_at: 0 };
    const cut = db.transaction().execute(async (transaction) => {
      await transaction.deleteFrom("installation").execute();
      await thread.close();
      await transaction.insertInto("installation").values(row).execute();
    });
    await expect(cut).rejects.toThrow("the store's worker ended");
    expect(await db.selectFrom("installation").selectAll().execute()).toEqual([]);
    await db.insertInto("installation").values(row).execute();
    await db.destroy();
  });

  test("rejects queries once the store is closed", async () => {
    await store.longReads.selectFrom("user").selectAll().execute();
    await store.close();
    await expect(store.longReads.selectFrom("user").selectAll().execute()).rejects.toThrow();
  });
});
