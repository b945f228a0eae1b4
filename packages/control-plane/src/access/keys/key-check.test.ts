import { randomBytes } from "node:crypto";
import { inspect } from "node:util";
import { DomainError } from "@fairlead/protocol/errors";
import { NO_LIMITS } from "@fairlead/protocol/key-limits";
import { TestClock } from "@fairlead/protocol/testing/test-clock";
import { beforeEach, describe, expect, test } from "vitest";
import { hashKey, type KeyRecord } from "./key.ts";
import { KeyCheck } from "./key-check.ts";
import { makeKey } from "./key-secret.ts";
import { KeyStore } from "./key-store.ts";

const MINUTE_MS = 60_000;

describe("the check of a project key", () => {
  const { value, publicId } = makeKey(randomBytes);
  const record: KeyRecord = {
    id: "key_1",
    projectId: "prj_1",
    userId: "usr_1",
    name: "mine",
    publicId,
    secretHash: hashKey(value),
    enabled: true,
    expiresAt: null,
    limits: NO_LIMITS,
    lastUsedAt: null,
    previous: null,
    createdAt: 0,
  };
  let clock: TestClock;
  let row: KeyRecord | null;
  let away: boolean;
  let asked: number;
  let check: KeyCheck;

  /** A store that answers with `row`, or is away. */
  class StubStore extends KeyStore {
    override async findByHash(hash: string): Promise<KeyRecord | null> {
      asked += 1;
      if (away) throw new Error("connection refused");
      return row?.secretHash === hash ? row : null;
    }
  }

  beforeEach(() => {
    clock = new TestClock();
    row = record;
    away = false;
    asked = 0;
    const keys = Object.create(StubStore.prototype) as StubStore;
    check = new KeyCheck({ keys, use: { note: () => undefined }, clock });
  });

  test("reads the store about once a second, however many calls are made, even at the same time", async () => {
    await Promise.all(Array.from({ length: 100 }, () => check.authenticate(value)));
    clock.advance(899);
    await check.authenticate(value);
    expect(asked).toBe(1);
    clock.advance(1);
    await check.authenticate(value);
    expect(asked).toBe(2);
  });

  test("rejects a key within a second after it is disabled without a notification", async () => {
    await check.authenticate(value);
    row = { ...record, enabled: false };
    clock.advance(1000);
    await expect(check.authenticate(value)).rejects.toMatchObject({ code: "invalid_credential" });
  });

  test("accepts a rejected key as soon as it is enabled", async () => {
    row = null;
    await expect(check.authenticate(value)).rejects.toMatchObject({ code: "invalid_credential" });
    row = record;
    await check.authenticate(value);
  });

  test("rejects an expired key, cached or not", async () => {
    row = { ...record, expiresAt: clock.now() + 500 };
    await check.authenticate(value);
    clock.advance(499);
    await check.authenticate(value);
    clock.advance(1);
    await expect(check.authenticate(value)).rejects.toMatchObject({ code: "expired_credential" });
  });

  test("reports an unknown key as invalid, but one that cannot be checked as unavailable", async () => {
    row = null;
    await expect(check.authenticate(value)).rejects.toMatchObject({ code: "invalid_credential" });
    away = true;
    await expect(check.authenticate(value)).rejects.toMatchObject({ code: "unavailable", retryAfterSeconds: 1 });
  });

  test("accepts a key in use for five minutes while the store is unreachable, and then cannot check it", async () => {
    await check.authenticate(value);
    away = true;
    clock.advance(5 * MINUTE_MS - 1);
    expect(await check.authenticate(value)).toMatchObject({ keyId: "key_1" });
    clock.advance(1000);
    await expect(check.authenticate(value)).rejects.toMatchObject({ code: "unavailable" });
  });

  test("rejects an expired key while the store is unreachable", async () => {
    row = { ...record, expiresAt: clock.now() + MINUTE_MS };
    await check.authenticate(value);
    away = true;
    clock.advance(MINUTE_MS);
    await expect(check.authenticate(value)).rejects.toMatchObject({ code: "expired_credential" });
  });

  test("rejects a key revoked during a store outage within a second after the store returns", async () => {
    await check.authenticate(value);
    away = true;
    clock.advance(MINUTE_MS);
    await check.authenticate(value);
    away = false;
    row = { ...record, enabled: false };
    clock.advance(1000);
    await expect(check.authenticate(value)).rejects.toMatchObject({ code: "invalid_credential" });
  });

  test("does not accept a forgotten key while the store is unreachable", async () => {
    await check.authenticate(value);
    check.forget(["key_1"]);
    away = true;
    await expect(check.authenticate(value)).rejects.toMatchObject({ code: "unavailable" });
  });

  // BerriAI/litellm#18731: an expired key stood in the refusal, and so in everything that kept refusals.
  test("never includes the rejected credential in an error or its cause", async () => {
    const refuse = async (secret: string): Promise<void> => {
      const refusal = await check.authenticate(secret).catch((error: unknown) => error);
      expect(refusal).toBeInstanceOf(DomainError);
      expect(inspect(refusal, { depth: 10 })).not.toContain(secret);
    };
    for (const secret of [`${value}x`, "flb_0123456789abcdef", "sk-proj-0123456789", "' OR 1=1 --"])
      await refuse(secret);
    for (const refused of [null, { ...record, enabled: false }, { ...record, expiresAt: clock.now() }]) {
      row = refused;
      await refuse(value);
      check.forget(["key_1"]);
    }
    away = true;
    await refuse(value);
  });

  test("directs other kinds of credentials to the right place, without reading the store", async () => {
    await expect(check.authenticate("flb_abc")).rejects.toThrow(/bootstrap token/);
    for (const text of ["sk-abc", "", value.slice(1), `${value.slice(0, -1)}!`, "flk_", "x".repeat(10_000)]) {
      await expect(check.authenticate(text)).rejects.toThrow(/not a complete project key/);
    }
    expect(asked).toBe(0);
  });
});
