import { sql } from "kysely";
import { expect, test } from "vitest";
import { STORES } from "../testing.fixture.ts";
import { isStoreAway } from "./errors.ts";

const postgres = STORES.filter(({ name }) => name === "PostgreSQL");

test.each(postgres)(
  "a connection that is cut while it is in use costs its transaction, and nothing else",
  async ({ openEmpty }) => {
    const store = await openEmpty();
    const held = Promise.withResolvers<number>();
    const cut = Promise.withResolvers<void>();
    const transaction = store.db.transaction().execute(async (within) => {
      const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(within);
      held.resolve(rows[0]?.pid ?? 0);
      await cut.promise;
      await sql`select 1`.execute(within);
    });
    const outcome = transaction.catch((error: unknown) => error);
    // The signal's result waits for the end of that connection, so the break is there before the transaction goes on.
    await sql`select pg_terminate_backend(${await held.promise}, 5000)`.execute(store.db);
    cut.resolve();
    expect(await outcome).toSatisfy(isStoreAway);
    await expect(store.ping()).resolves.toBeUndefined();
    await store.close();
  },
);
