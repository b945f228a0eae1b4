import { expect, test } from "vitest";
import { openMemoryStore } from "../testing.fixture.ts";
import { ensureInstallation } from "./installation-store.ts";

test("an installation keeps the identity of its first start", async () => {
  const store = await openMemoryStore();
  const first = { id: "ins_1", epoch: "epo_1", createdAt: 1 };
  expect(await ensureInstallation(store.db, first)).toEqual(first);
  expect(await ensureInstallation(store.db, { id: "ins_2", epoch: "epo_2", createdAt: 2 })).toEqual(first);
  await store.close();
});
