import { randomBytes } from "node:crypto";
import { countingIds, TestClock } from "@fairlead/protocol/testing/test-clock";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { OpenedDatabase } from "../../installation/db/open.ts";
import { insertUser, openMemoryStore, STORES } from "../../testing.fixture.ts";
import { isLinkToken, linkUrl, maskedEmail } from "./one-time-link.ts";
import { type CreateLink, OneTimeLinkService } from "./one-time-link-service.ts";
import { oneTimeLinkStoreContract } from "./one-time-link-store.contract.ts";

for (const { name, open } of STORES) oneTimeLinkStoreContract(name, open);

describe("the one-time link service", () => {
  let store: OpenedDatabase;
  let clock: TestClock;
  let service: OneTimeLinkService;
  const setUp: CreateLink = {
    purpose: "set_up",
    email: null,
    userId: null,
    projectId: null,
    role: null,
    createdBy: null,
    lifeMs: 1000,
  };
  const reset: CreateLink = { ...setUp, purpose: "reset", userId: "usr_ann" };
  const create = async (input: CreateLink): Promise<string> => (await service.create(store.db, input)).token;

  beforeEach(async () => {
    store = await openMemoryStore();
    clock = new TestClock();
    await insertUser(store, "usr_ann");
    service = new OneTimeLinkService({ db: store.db, clock, ids: countingIds(), randomBytes });
  });
  afterEach(() => store.close());

  test("finds a link however often it is opened, and spends it once", async () => {
    const { link, token } = await service.create(store.db, reset);
    expect(link).toMatchObject({ purpose: "reset", userId: "usr_ann", expiresAt: clock.now() + 1000 });
    for (const _ of [1, 2, 3]) expect(await service.find(token)).toEqual(link);
    expect(await service.spend(store.db, token, "usr_ann")).toMatchObject({ id: link.id, usedBy: "usr_ann" });
    expect(await service.find(token)).toBeNull();
    await expect(service.spend(store.db, token, "usr_ann")).rejects.toMatchObject({ code: "not_found" });
  });

  test("shows a spent link only to the user who spent it", async () => {
    const { link, token } = await service.create(store.db, reset);
    expect(await service.findUsedBy(token, "usr_ann")).toBeNull();
    await service.spend(store.db, token, "usr_ann");
    expect(await service.findUsedBy(token, "usr_ann")).toMatchObject({ id: link.id });
    expect(await service.findUsedBy(token, "usr_bob")).toBeNull();
    expect(await service.findUsedBy("x", "usr_ann")).toBeNull();
  });

  test("keeps a link valid if the transaction that spends it fails", async () => {
    const token = await create(reset);
    const work = store.db.transaction().execute(async (transaction) => {
      await service.spend(transaction, token, "usr_ann");
      throw new Error("the account could not be made");
    });
    await expect(work).rejects.toThrow("could not be made");
    expect(await service.find(token)).not.toBeNull();
  });

  test("voids the earlier link for the same subject, and no other", async () => {
    const first = await create(setUp);
    const other = await create(reset);
    const second = await create(setUp);
    expect(await service.find(first)).toBeNull();
    expect(await service.find(second)).not.toBeNull();
    expect(await service.find(other)).not.toBeNull();
  });

  test("expires a link at its time, to the millisecond", async () => {
    const token = await create(reset);
    clock.advance(999);
    expect(await service.find(token)).not.toBeNull();
    clock.advance(1);
    expect(await service.find(token)).toBeNull();
    await expect(service.spend(store.db, token, "usr_ann")).rejects.toMatchObject({ code: "not_found" });
  });

  test("stores no token", async () => {
    const token = await create(reset);
    const rows = JSON.stringify(await store.db.selectFrom("one_time_link").selectAll().execute());
    expect(rows).not.toContain(token);
    expect(rows).not.toContain(token.slice(4, 20));
  });

  test.each([
    "",
    "fli_",
    `fli_${"a".repeat(42)}`,
    `fli_${"a".repeat(44)}`,
    "flk_x",
    `fli_${"a".repeat(42)}\0`,
    "'; --",
  ])("rejects %j as a token", async (text) => {
    expect(isLinkToken(text)).toBe(false);
    expect(await service.find(text)).toBeNull();
    await expect(service.spend(store.db, text, "usr_ann")).rejects.toMatchObject({ code: "not_found" });
  });

  test.each([
    ["bob@example.org", "b…@example.org"],
    ["🚢@example.org", "🚢…@example.org"],
    ["odd", "o…"],
    ["", "…"],
  ])("masks the address %s as %s", (email, shown) => {
    expect(maskedEmail(email)).toBe(shown);
  });

  test("creates tokens with 256 bits and their own prefix, and a URL for each page", async () => {
    const token = await create(reset);
    expect(token).toMatch(/^fli_[\w-]{43}$/);
    expect(linkUrl("https://f.example", "reset", token)).toBe(`https://f.example/reset/${token}`);
    expect(linkUrl("https://f.example", "set_up", token)).toBe(`https://f.example/set-up/${token}`);
    expect(linkUrl("https://f.example", "invitation", token)).toBe(`https://f.example/invitations/${token}`);
  });
});
