import { isForeignKeyViolation, isStoreAway, isUniqueViolation } from "@fairlead/hosting/errors/store-errors";
import { expect, test } from "vitest";
import { insertUser, STORES } from "../../testing.fixture.ts";

async function errorOf(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => null,
    (error: unknown) => error,
  );
}

test.each(STORES)(
  "a second row with the same key is a unique violation, by primary key and by column, on $name",
  async ({ open }) => {
    const store = await open();
    await insertUser(store, "usr_a");
    const again = await errorOf(insertUser(store, "usr_a"));
    expect(isUniqueViolation(again)).toBe(true);
    expect(isForeignKeyViolation(again)).toBe(false);
    await store.close();
  },
);

test.each(STORES)("a row with a dangling reference is a foreign key violation, on $name", async ({ open }) => {
  const store = await open();
  const row = { project_id: "prj_none", user_id: "usr_none", role: "owner", created_at: 0 };
  const error = await errorOf(store.db.insertInto("member").values(row).execute());
  expect(isForeignKeyViolation(error)).toBe(true);
  expect(isUniqueViolation(error)).toBe(false);
  await store.close();
});

const AWAY =
  "SQLITE_BUSY SQLITE_BUSY_SNAPSHOT SQLITE_FULL SQLITE_IOERR_WRITE SQLITE_CORRUPT SQLITE_NOTADB " +
  "57P01 08006 53300 28P01 3D000 25006 40P01 ECONNREFUSED EAI_AGAIN";

test.each(AWAY.split(" "))("%s means that the store is unavailable", (code) => {
  expect(isStoreAway(Object.assign(new Error("x"), { code }))).toBe(true);
});

test.each(["SQLITE_CONSTRAINT_UNIQUE", "SQLITE_ERROR", "23505", "42P01", "22021", "ENOENT"])(
  "%s does not mean that the store is unavailable",
  (code) => {
    expect(isStoreAway(Object.assign(new Error("x"), { code }))).toBe(false);
  },
);

test("other thrown values are none of these", () => {
  for (const thrown of [null, "text", new Error("x"), Object.assign(new Error("x"), { code: 5 })]) {
    expect([isUniqueViolation(thrown), isForeignKeyViolation(thrown), isStoreAway(thrown)]).toEqual([
      false,
      false,
      false,
    ]);
  }
});
