import { randomBytes } from "node:crypto";
import { countingIds, TestClock } from "@fairlead/protocol/testing/test-clock";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { AuditService } from "../../access/audit/audit-service.ts";
import { openKeyRing } from "../../access/auth/sealing/key-ring.ts";
import { KeyRingStore } from "../../access/auth/sealing/key-ring-store.ts";
import { memorySealer } from "../../access/auth/sealing/memory-sealer.ts";
import { TokenService } from "../../access/auth/tokens/tokens.ts";
import type { OpenedDatabase } from "../../installation/db/open.ts";
import { openMemoryStore, STORES } from "../../testing.fixture.ts";
import { emailSchema } from "./user.ts";
import { MAX_TOKEN_TTL_SECONDS, UserService } from "./user-service.ts";
import { userStoreContract } from "./user-store.contract.ts";

for (const { name, open } of STORES) userStoreContract(name, open);

describe("the user service", () => {
  let store: OpenedDatabase;
  let clock: TestClock;
  let tokens: TokenService;
  let service: UserService;
  const actor = { kind: "system", name: "local_admin" } as const;
  const ann = { actor, email: "ann@example.org", name: "Ann", platformAdmin: false };

  beforeEach(async () => {
    store = await openMemoryStore();
    clock = new TestClock();
    const ids = countingIds();
    const keyRing = await openKeyRing({ store: new KeyRingStore(store.db), sealer: memorySealer(), clock, ids });
    tokens = new TokenService({ keyRing, installationId: "ins_1", clock });
    const audit = new AuditService({ clock, ids });
    service = new UserService({ db: store.db, audit, tokens, clock, ids, randomBytes });
  });
  afterEach(() => store.close());

  const sessionOf = async (token: string): Promise<Awaited<ReturnType<UserService["find"]>>> => {
    const claims = await tokens.verify(token);
    return claims.audience === "platform" ? service.find(claims.sessionId) : null;
  };

  test("creates a user once, however many requests come, even at the same time", async () => {
    const answers = await Promise.all([
      service.ensure(ann),
      service.ensure(ann),
      service.ensure({ ...ann, name: "B" }),
    ]);
    expect(answers.filter(({ created }) => created)).toHaveLength(1);
    expect(new Set(answers.map(({ user }) => user.id)).size).toBe(1);
  });

  test("makes an existing user an administrator if requested, and never revokes it", async () => {
    await service.ensure(ann);
    expect((await service.ensure({ ...ann, platformAdmin: true })).user.platformAdmin).toBe(true);
    expect((await service.ensure(ann)).user.platformAdmin).toBe(true);
  });

  test("finds the user of a token while the session lives", async () => {
    const { user } = await service.ensure({ ...ann, platformAdmin: true });
    const { token, expiresAt } = await service.openSession({ actor, email: ann.email, ttlSeconds: 60 });
    expect(expiresAt).toBe(clock.now() + 60_000);
    expect(await sessionOf(token)).toMatchObject({ userId: user.id, platformAdmin: true });
    await store.db.deleteFrom("session").execute();
    expect(await sessionOf(token)).toBeNull();
  });

  test("ends a session after its lifetime and the allowed clock skew", async () => {
    await service.ensure(ann);
    await service.openSession({ actor, email: ann.email, ttlSeconds: 60 });
    const { id } = await store.db.selectFrom("session").select("id").executeTakeFirstOrThrow();
    clock.advance(119_000);
    expect(await service.find(id)).not.toBeNull();
    clock.advance(1000);
    expect(await service.find(id)).toBeNull();
  });

  test("deletes sessions that have ended", async () => {
    await service.ensure(ann);
    await service.openSession({ actor, email: ann.email, ttlSeconds: 60 });
    clock.advance(121_000);
    await service.openSession({ actor, email: ann.email, ttlSeconds: 60 });
    expect(await store.db.selectFrom("session").select("id").execute()).toHaveLength(1);
  });

  test.each([0, -1, 1.5, Number.NaN, MAX_TOKEN_TTL_SECONDS + 1])(
    "rejects a lifetime of %d seconds",
    async (ttlSeconds) => {
      await service.ensure(ann);
      await expect(service.openSession({ actor, email: ann.email, ttlSeconds })).rejects.toMatchObject({
        code: "invalid_request",
        param: "ttlSeconds",
      });
    },
  );

  test("issues no token for a user who does not exist", async () => {
    await expect(service.openSession({ actor, email: "x@example.org", ttlSeconds: 60 })).rejects.toMatchObject({
      code: "not_found",
    });
  });

  test("converts email addresses to lower case and trims them, or rejects them", () => {
    expect(emailSchema.parse(" Ann@Example.ORG ")).toBe("ann@example.org");
    for (const text of ["", "ann", "ann@", "a b@example.org", `${"a".repeat(250)}@example.org`]) {
      expect(emailSchema.safeParse(text).success).toBe(false);
    }
  });
});
