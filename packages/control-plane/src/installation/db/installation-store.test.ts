import { expect, test } from "vitest";
import { STORES } from "../../testing.fixture.ts";
import { ensureInstallation } from "./installation-store.ts";

test.each(STORES)("an installation keeps the identity from its first start, on $name", async ({ open }) => {
  const store = await open();
  const first = { id: "ins_1", epoch: "epo_1", createdAt: 1 };
  expect(await ensureInstallation(store.db, first)).toEqual(first);
  expect(await ensureInstallation(store.db, { id: "ins_2", epoch: "epo_2", createdAt: 2 })).toEqual(first);
  await store.close();
});

test.each(STORES)("servers that start at the same time create one installation, on $name", async ({ open }) => {
  const store = await open();
  const fresh = [1, 2, 3].map((n) => ({ id: `ins_${n}`, epoch: `epo_${n}`, createdAt: n }));
  const records = await Promise.all(fresh.map((record) => ensureInstallation(store.db, record)));
  expect(new Set(records.map(({ id }) => id)).size).toBe(1);
  await store.close();
});
