import { isStoreAway } from "@fairlead/hosting/errors/store-errors";
import { sql } from "kysely";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { STORES } from "../../../testing.fixture.ts";
import { type OpenedDatabase, openDatabase } from "../open.ts";

const postgres = STORES.find(({ name }) => name === "PostgreSQL");

describe.skipIf(postgres === undefined)("a session on PostgreSQL", () => {
  let url: string;
  let store: OpenedDatabase;
  let dropStore: () => Promise<void>;

  beforeEach(async () => {
    const shared = await postgres?.openShared("");
    if (shared === undefined || !("url" in shared.location)) throw new Error("PostgreSQL has a URL");
    ({ url } = shared.location);
    dropStore = () => shared.close();
    store = openDatabase(shared.location, { limits: { connections: 2 } });
    await sql`create table thing (n int primary key)`.execute(store.db);
  });
  afterEach(async () => {
    await store.close();
    await dropStore();
  });

  const setting = async (name: string, db = store.db): Promise<string> => {
    const { rows } = await db
      .transaction()
      .execute((transaction) => sql<{ value: string }>`select current_setting(${name}) as value`.execute(transaction));
    return rows[0]?.value ?? "";
  };
  const pids = async (): Promise<number[]> => {
    const read = (): Promise<{ rows: { pid: number }[] }> =>
      sql<{ pid: number }>`select pg_backend_pid() as pid, pg_sleep(0.05)`.execute(store.db);
    const both = await Promise.all([read(), read()]);
    return both.map(({ rows }) => rows[0]?.pid ?? 0);
  };

  test("bounds every transaction's statements, lock waits and idle time", async () => {
    expect(await setting("statement_timeout")).toBe("5s");
    expect(await setting("lock_timeout")).toBe("3s");
    expect(await setting("idle_in_transaction_session_timeout")).toBe("10s");
    expect(await setting("statement_timeout", store.longReads)).toBe("30s");
    expect(await setting("statement_timeout", store.maintenance)).toBe("0");
  });

  test("leaves nothing behind for others that share the connection, as in PgBouncer's transaction mode", async () => {
    await setting("statement_timeout");
    await sql`insert into thing values (1)`.execute(store.db);
    const { rows } = await sql<{ value: string }>`select current_setting('statement_timeout') as value`.execute(
      store.db,
    );
    expect(rows).toEqual([{ value: "0" }]);
  });

  test("a standalone write that waits for a lock fails in time as a store fault", { timeout: 15_000 }, async () => {
    const held = await store.db.startTransaction().execute();
    await sql`insert into thing values (1)`.execute(held);
    await expect(sql`insert into thing values (1)`.execute(store.db)).rejects.toSatisfy(
      (error) => isStoreAway(error) && (error as { code?: string }).code === "55P03",
    );
    await held.rollback().execute();
    await sql`insert into thing values (1)`.execute(store.db);
  });

  test("a standalone write that fails leaves no transaction open", async () => {
    await sql`insert into thing values (1)`.execute(store.db);
    await expect(sql`insert into thing values (1)`.execute(store.db)).rejects.toMatchObject({ code: "23505" });
    const { rows } =
      await sql`select 1 from pg_stat_activity where state like 'idle in transaction%' and query like '%thing%'
      and datname = current_database()`.execute(store.db);
    expect(rows).toEqual([]);
    expect((await sql`update thing set n = 2`.execute(store.db)).numAffectedRows).toBe(1n);
  });

  test("is replaced when the server ends it", async () => {
    const [first = 0, second = 0] = await pids();
    const admin = openDatabase({ url });
    await sql`select pg_terminate_backend(${first}), pg_terminate_backend(${second})`.execute(admin.db);
    await admin.close();
    await expect.poll(() => pids().catch(() => [first])).not.toContain(first);
    expect(await pids()).not.toContain(second);
  });

  test("leaves a server that has become read-only, and tries it again", async () => {
    const before = await pids();
    await sql.raw("set default_transaction_read_only = on").execute(store.db);
    const results: unknown[] = [];
    for (let n = 0; n < 4; n++) {
      results.push(await sql`insert into thing values (${n})`.execute(store.db).then(() => "written", isStoreAway));
    }
    expect(results).toContain(true);
    expect(results.filter((result) => result === true)).toHaveLength(1);
    expect(await pids()).not.toEqual(before);
  });

  test("skips a read-only host among several", async () => {
    const { host, searchParams } = new URL(url);
    searchParams.set("options", `${searchParams.get("options") ?? ""} -c default_transaction_read_only=on`);
    const one = new URL(url);
    one.search = searchParams.toString();
    const reading = openDatabase({ url: one.href.replace(host, `${host},127.0.0.1:1`) });
    await expect(sql`select 1`.execute(reading.db)).rejects.toMatchObject({ code: "ECONNREFUSED" });
    await reading.close();
    const writing = openDatabase({ url: url.replace(host, `127.0.0.1:1,${host}`) });
    await sql`insert into thing values (1)`.execute(writing.db);
    await writing.close();
  });
});
