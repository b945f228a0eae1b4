import { randomBytes } from "node:crypto";
import { countingIds, TestClock } from "@fairlead/protocol/testing/test-clock";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { OpenedDatabase } from "../../installation/db/open.ts";
import { asUser, fixedMemberships, insertProject, insertUser, openMemoryStore, STORES } from "../../testing.fixture.ts";
import type { AuditEventRecord } from "../audit/audit.ts";
import { AuditService } from "../audit/audit-service.ts";
import { AuditStore } from "../audit/audit-store.ts";
import { ProjectAccess } from "../auth/access.ts";
import { IdempotencyService } from "../idempotency/idempotency-service.ts";
import type { Once } from "../idempotency/once.ts";
import { KeyService, type KeyWithValue } from "./key-service.ts";
import { keyStoreContract } from "./key-store.contract.ts";
import { KeyStore } from "./key-store.ts";
import { KeyUse } from "./key-use.ts";

for (const { name, open } of STORES) keyStoreContract(name, open);

const ROLE_OF = {
  usr_own: "owner",
  usr_adm: "admin",
  usr_ann: "member",
  usr_bea: "member",
  usr_vic: "viewer",
} as const;
const [own, adm, ann, bea, vic] = ["usr_own", "usr_adm", "usr_ann", "usr_bea", "usr_vic"].map(asUser) as [
  ReturnType<typeof asUser>,
  ReturnType<typeof asUser>,
  ReturnType<typeof asUser>,
  ReturnType<typeof asUser>,
  ReturnType<typeof asUser>,
];
const stranger = asUser("usr_eve");
const HOUR_MS = 3_600_000;

describe("the key service", () => {
  let store: OpenedDatabase;
  let clock: TestClock;
  let use: KeyUse;
  let service: KeyService;

  beforeEach(async () => {
    store = await openMemoryStore();
    clock = new TestClock();
    for (const id of Object.keys(ROLE_OF)) await insertUser(store, id);
    for (const id of ["prj_1", "prj_2"]) await insertProject(store, id, "usr_own");
    const keys = new KeyStore(store.db);
    const ids = countingIds();
    use = new KeyUse({ keys, clock, log: pino({ level: "silent" }) });
    const roles: Readonly<Record<string, (typeof ROLE_OF)[keyof typeof ROLE_OF]>> = ROLE_OF;
    service = new KeyService({
      keys,
      use,
      access: new ProjectAccess(
        fixedMemberships((projectId, userId) => (projectId === "prj_1" ? (roles[userId] ?? null) : null)),
      ),
      audit: new AuditService({ clock, ids }),
      clock,
      ids,
      randomBytes,
    });
  });
  afterEach(async () => {
    await use.close();
    await store.close();
  });

  const create = (caller = ann): Promise<KeyWithValue> => service.create(caller, { projectId: "prj_1", name: "mine" });
  const nameOf = ({ key }: KeyWithValue): { projectId: string; id: string } => ({ projectId: "prj_1", id: key.id });
  const works = async (secret: string): Promise<boolean> => {
    try {
      await service.authenticate(secret);
      return true;
    } catch {
      return false;
    }
  };
  const audited = async (): Promise<readonly AuditEventRecord[]> =>
    (await new AuditStore(store.db).list("prj_1", {}, { after: null, limit: 50 })).toReversed();

  test("authenticates a created key as its project, with its owner and limits", async () => {
    const { key, value } = await service.create(ann, {
      projectId: "prj_1",
      name: "mine",
      limits: { modelAllowList: ["a/*"], budget: { daily: 5 } },
    });
    expect(await service.authenticate(value)).toEqual({
      kind: "key",
      keyId: key.id,
      projectId: "prj_1",
      userId: "usr_ann",
      limits: {
        modelAllowList: ["a/*"],
        requestsPerMinute: null,
        tokensPerMinute: null,
        parallelCalls: null,
        budget: { total: null, daily: 5, monthly: null },
      },
    });
  });

  test("creates a key disabled or with an expiry, but not with one in the past", async () => {
    const off = await service.create(ann, { projectId: "prj_1", name: "off", enabled: false });
    expect(await works(off.value)).toBe(false);
    const expiresAt = clock.now() + 1000;
    const short = await service.create(ann, { projectId: "prj_1", name: "short", expiresAt });
    expect(await works(short.value)).toBe(true);
    clock.advance(1000);
    await expect(service.authenticate(short.value)).rejects.toMatchObject({ code: "expired_credential" });
    await expect(service.create(ann, { projectId: "prj_1", name: "late", expiresAt })).rejects.toMatchObject({
      code: "invalid_request",
      param: "expiresAt",
    });
  });

  test("stores no secret of created and rotated keys", async () => {
    const made = await create();
    const again = await service.rotate(ann, { ...nameOf(made), overlapSeconds: 60 });
    const tables = [await store.db.selectFrom("project_key").selectAll().execute(), await audited()];
    const text = JSON.stringify(tables);
    for (const { value } of [made, again]) {
      expect(text).not.toContain(value);
      expect(text).not.toContain(value.split("_")[2]);
    }
  });

  test("returns 404 to strangers for everything, and changes nothing", async () => {
    const made = await create();
    const name = nameOf(made);
    const calls = [
      service.create(stranger, { projectId: "prj_1", name: "x" }),
      service.list(stranger, "prj_1", { userId: null, after: null, limit: 10 }),
      service.get(stranger, name),
      service.update(stranger, name, { enabled: false }),
      service.rotate(stranger, { ...name, overlapSeconds: 0 }),
      service.delete(stranger, name),
    ];
    for (const call of calls) await expect(call).rejects.toMatchObject({ code: "not_found" });
    expect(await works(made.value)).toBe(true);
  });

  test("lets viewers read keys, but not create or change them", async () => {
    const name = nameOf(await create());
    expect(await service.get(vic, name)).toMatchObject({ id: name.id });
    expect(await service.list(vic, "prj_1", { userId: null, after: null, limit: 10 })).toHaveLength(1);
    const calls = [
      service.create(vic, { projectId: "prj_1", name: "x" }),
      service.update(vic, name, { name: "x" }),
      service.rotate(vic, { ...name, overlapSeconds: 0 }),
      service.delete(vic, name),
    ];
    for (const call of calls) await expect(call).rejects.toMatchObject({ code: "permission_denied" });
  });

  test("lets members manage only the keys they created, and admins and owners all keys", async () => {
    const name = nameOf(await create(ann));
    for (const change of [
      service.update(bea, name, { name: "x" }),
      service.rotate(bea, { ...name, overlapSeconds: 0 }),
      service.delete(bea, name),
    ]) {
      await expect(change).rejects.toMatchObject({ code: "permission_denied" });
    }
    for (const caller of [ann, adm, own]) {
      expect(await service.update(caller, name, { name: caller.userId })).toMatchObject({ name: caller.userId });
    }
    await service.delete(own, name);
    await expect(service.get(ann, name)).rejects.toMatchObject({ code: "not_found" });
  });

  test("does not reach a key of another project through the caller's own project", async () => {
    const made = await create();
    await store.db.updateTable("project_key").set({ project_id: "prj_2" }).execute();
    for (const call of [
      service.get(own, nameOf(made)),
      service.update(own, nameOf(made), { enabled: false }),
      service.rotate(own, { ...nameOf(made), overlapSeconds: 0 }),
      service.delete(own, nameOf(made)),
    ]) {
      await expect(call).rejects.toMatchObject({ code: "not_found" });
    }
    expect(await store.db.selectFrom("project_key").select("enabled").execute()).toEqual([{ enabled: 1 }]);
  });

  test("applies changes immediately: disabling, enabling, limits and deletion", async () => {
    const made = await create();
    expect(await works(made.value)).toBe(true);
    await service.update(ann, nameOf(made), { enabled: false });
    expect(await works(made.value)).toBe(false);
    await service.update(ann, nameOf(made), { enabled: true, limits: { parallelCalls: 3 } });
    expect((await service.authenticate(made.value)).limits.parallelCalls).toBe(3);
    await service.delete(ann, nameOf(made));
    await expect(service.authenticate(made.value)).rejects.toMatchObject({ code: "invalid_credential" });
  });

  test("rejects a past expiry in a change, unless it is the current one", async () => {
    const made = await create();
    const expiresAt = clock.now() + HOUR_MS;
    await service.update(ann, nameOf(made), { expiresAt });
    clock.advance(2 * HOUR_MS);
    expect(await service.update(ann, nameOf(made), { name: "again", expiresAt })).toMatchObject({ name: "again" });
    await expect(service.update(ann, nameOf(made), { expiresAt: expiresAt + 1 })).rejects.toMatchObject({
      param: "expiresAt",
    });
    await service.update(ann, nameOf(made), { expiresAt: null });
    expect(await works(made.value)).toBe(true);
  });

  test("accepts both secrets during the overlap, and the old one not a second longer", async () => {
    const made = await create();
    const next = await service.rotate(ann, { ...nameOf(made), overlapSeconds: 60 });
    expect(next.key).toMatchObject({ id: made.key.id, previous: { publicId: made.key.publicId } });
    expect([await works(made.value), await works(next.value)]).toEqual([true, true]);
    clock.advance(59_999);
    expect([await works(made.value), await works(next.value)]).toEqual([true, true]);
    clock.advance(1);
    await expect(service.authenticate(made.value)).rejects.toMatchObject({
      code: "expired_credential",
      message: expect.stringContaining("was replaced"),
    });
    expect(await works(next.value)).toBe(true);
  });

  test("ends the old secret immediately without an overlap, even if it was just used", async () => {
    const made = await create();
    expect(await works(made.value)).toBe(true);
    const next = await service.rotate(ann, { ...nameOf(made), overlapSeconds: 0 });
    await expect(service.authenticate(made.value)).rejects.toMatchObject({ code: "invalid_credential" });
    expect(await works(next.value)).toBe(true);
  });

  test("ends the oldest secret immediately if a key is rotated again during the overlap", async () => {
    const first = await create();
    const second = await service.rotate(ann, { ...nameOf(first), overlapSeconds: 3600 });
    expect(await works(first.value)).toBe(true);
    const third = await service.rotate(ann, { ...nameOf(first), overlapSeconds: 3600 });
    expect([await works(first.value), await works(second.value), await works(third.value)]).toEqual([
      false,
      true,
      true,
    ]);
  });

  test("keeps the last two secrets valid after two simultaneous rotations", async () => {
    const made = await create();
    const both = await Promise.all([1, 2].map(() => service.rotate(ann, { ...nameOf(made), overlapSeconds: 3600 })));
    const alive = await Promise.all([made, ...both].map(({ value }) => works(value)));
    expect(alive).toEqual([false, true, true]);
  });

  test("does not restore the old secret when a disabled key is rotated and enabled again", async () => {
    const made = await create();
    await service.update(adm, nameOf(made), { enabled: false });
    const next = await service.rotate(adm, { ...nameOf(made), overlapSeconds: 3600 });
    await service.update(adm, nameOf(made), { enabled: true });
    expect([await works(made.value), await works(next.value)]).toEqual([false, true]);
  });

  test("rotates once for two requests with one Idempotency-Key, and does not return the secret again", async () => {
    const made = await create();
    const idempotency = new IdempotencyService({ db: store.db, clock });
    const call = { key: "k", userId: "usr_ann", projectId: "prj_1", route: "rotate", body: {} };
    const rotate = (): Promise<unknown> =>
      idempotency.create(call, {
        make: (once: Once<KeyWithValue>) => service.rotate(ann, { ...nameOf(made), overlapSeconds: 3600 }, once),
        answer: ({ value }) => value,
        idOf: ({ key }) => key.id,
        secret: true,
      });
    await rotate();
    await expect(rotate()).rejects.toMatchObject({ code: "already_exists" });
    expect(await works(made.value)).toBe(true);
  });

  test("rejects the keys of a former member or a deleted project as soon as they are forgotten", async () => {
    const mine = await create(ann);
    const other = await create(bea);
    const rotatedMine = await service.rotate(ann, { ...nameOf(mine), overlapSeconds: 3600 });
    for (const { value } of [mine, rotatedMine, other]) expect(await works(value)).toBe(true);
    const disabled = await store.db.transaction().execute((tx) => service.disableKeysOf(tx, "prj_1", "usr_ann"));
    expect(disabled).toEqual([mine.key.id]);
    service.forget(disabled);
    for (const { value } of [mine, rotatedMine]) expect(await works(value)).toBe(false);
    expect(await works(other.value)).toBe(true);
    service.forget(await store.db.transaction().execute((tx) => service.disableKeysOfProject(tx, "prj_1")));
    expect(await works(other.value)).toBe(false);
  });

  test("reports the last use of each secret to the minute", async () => {
    const made = await create();
    const lastUsed = async (): Promise<readonly (number | null | undefined)[]> => {
      await use.close();
      const { lastUsedAt, previous } = await service.get(ann, nameOf(made));
      return [lastUsedAt, previous?.lastUsedAt];
    };
    expect(await lastUsed()).toEqual([null, undefined]);
    const begun = clock.now();
    await works(made.value);
    expect(await lastUsed()).toEqual([begun, undefined]);
    clock.advance(59_000);
    await works(made.value);
    expect(await lastUsed()).toEqual([begun, undefined]);
    clock.advance(1000);
    await works(made.value);
    expect(await lastUsed()).toEqual([begun + 60_000, undefined]);
    const next = await service.rotate(ann, { ...nameOf(made), overlapSeconds: 3600 });
    clock.advance(60_000);
    await works(next.value);
    expect(await lastUsed()).toEqual([begun + 120_000, begun + 60_000]);
    clock.advance(60_000);
    await works(made.value);
    expect(await lastUsed()).toEqual([begun + 180_000, begun + 180_000]);
  });

  test("records no use of a rejected key", async () => {
    const made = await create();
    await service.update(ann, nameOf(made), { enabled: false });
    await works(made.value);
    await use.close();
    expect(await service.get(ann, nameOf(made))).toMatchObject({ lastUsedAt: null });
  });

  test("records every change with the changed fields, and nothing without a change", async () => {
    const made = await create();
    await service.update(ann, nameOf(made), { name: "mine", enabled: true, limits: {} });
    await service.update(ann, nameOf(made), { name: "new", limits: { budget: { daily: 5 } } });
    await service.update(ann, nameOf(made), { enabled: false, expiresAt: clock.now() + 1 });
    const next = await service.rotate(ann, { ...nameOf(made), overlapSeconds: 60 });
    await service.delete(ann, nameOf(made));
    const events = await audited();
    expect(events.map(({ action, detail }) => [action, detail])).toEqual([
      ["key.create", { keyId: made.key.publicId }],
      ["key.update", { fields: "name,limits.budget.daily" }],
      ["key.disable", {}],
      ["key.update", { fields: "expiresAt" }],
      ["key.rotate", { keyId: next.key.publicId, previousKeyId: made.key.publicId, overlapSeconds: 0 }],
      ["key.delete", { keyId: next.key.publicId }],
    ]);
    expect(events[1]).toMatchObject({ resource: { type: "key", id: made.key.id, name: "new" } });
  });
});
