import { NO_LIMITS } from "@fairlead/protocol/key-limits";
import { ROLES, type Role } from "@fairlead/protocol/resources";
import { nameSchema } from "@fairlead/protocol/values/text";
import { describe, expect, test } from "vitest";
import { mayDo } from "../auth/access.ts";
import {
  changedFields,
  hashKey,
  type KeyRecord,
  operationToChange,
  overlapSchema,
  rotated,
  toProjectKey,
} from "./key.ts";

const record: KeyRecord = {
  id: "key_1",
  projectId: "prj_1",
  userId: "usr_1",
  name: "n",
  publicId: "pub",
  secretHash: hashKey("flk_secret"),
  enabled: true,
  expiresAt: null,
  limits: NO_LIMITS,
  lastUsedAt: null,
  previous: null,
  createdAt: 0,
};

describe("a project key", () => {
  test("has the fields of the interface and ours, and its value only when it is created", () => {
    expect(toProjectKey(record, { now: 0 })).toEqual({
      id: "key_1",
      projectId: "prj_1",
      userId: "usr_1",
      name: "n",
      keyId: "pub",
      createdAt: "1970-01-01T00:00:00.000Z",
      enabled: true,
      expiresAt: null,
      lastUsedAt: null,
      limits: NO_LIMITS,
      spent: { total: 0, daily: 0, monthly: 0 },
      previousSecret: null,
    });
    expect(toProjectKey(record, { now: 0, keyValue: "flk_secret" }).keyValue).toBe("flk_secret");
    expect(JSON.stringify(toProjectKey(record, { now: 0 }))).not.toContain(record.secretHash);
  });

  test.each(["", "   ", "x".repeat(81), "two\nlines", "nul\0"])("cannot be named %j", (name) => {
    expect(nameSchema.safeParse(name).success).toBe(false);
  });
});

describe("who may change a key", () => {
  const may: Record<Role, { readonly own: boolean; readonly others: boolean }> = {
    owner: { own: true, others: true },
    admin: { own: true, others: true },
    member: { own: true, others: false },
    viewer: { own: false, others: false },
  };
  test.each(ROLES)("%s", (role) => {
    expect(mayDo(role, operationToChange(record, "usr_1"))).toBe(may[role].own);
    expect(mayDo(role, operationToChange(record, "usr_2"))).toBe(may[role].others);
    expect(mayDo(role, "key.list")).toBe(true);
  });
});

describe("a rotation", () => {
  const used = { ...record, lastUsedAt: 5 };
  const next = { publicId: "pub2", secretHash: "hash2", endsAt: 1000 };

  test("keeps the current secret until the overlap ends, and drops the previous one", () => {
    const previous = { publicId: "pub", secretHash: record.secretHash, endsAt: 1000, lastUsedAt: 5 };
    expect(rotated(used, next)).toEqual({ ...used, publicId: "pub2", secretHash: "hash2", previous });
    expect(rotated(rotated(used, next), { publicId: "pub3", secretHash: "hash3", endsAt: 2000 }).previous).toEqual({
      publicId: "pub2",
      secretHash: "hash2",
      endsAt: 2000,
      lastUsedAt: 5,
    });
  });

  test("keeps no other secret without an overlap", () => {
    expect(rotated(rotated(used, next), { publicId: "pub3", secretHash: "hash3", endsAt: null }).previous).toBeNull();
  });

  test("shows the previous secret while it works, and not a moment longer", () => {
    const key = rotated(used, next);
    expect(toProjectKey(key, { now: 999 })).toMatchObject({
      keyId: "pub2",
      previousSecret: {
        keyId: "pub",
        expiresAt: "1970-01-01T00:00:01.000Z",
        lastUsedAt: "1970-01-01T00:00:00.005Z",
      },
    });
    expect(toProjectKey(key, { now: 1000 }).previousSecret).toBeNull();
    expect(JSON.stringify(toProjectKey(key, { now: 0 }))).not.toContain(record.secretHash);
  });

  test.each([-1, 0.5, 30 * 24 * 3600 + 1, "60", null])("rejects an overlap of %j", (overlap) => {
    expect(overlapSchema.safeParse(overlap).success).toBe(false);
  });
});

describe("the changed fields of a key", () => {
  test("are listed by name", () => {
    const limits = {
      ...NO_LIMITS,
      modelAllowList: ["a/b"],
      parallelCalls: 1,
      budget: { ...NO_LIMITS.budget, daily: 5 },
    };
    expect(changedFields(record, { ...record, name: "m", enabled: false, expiresAt: 1, limits })).toEqual([
      "name",
      "enabled",
      "expiresAt",
      "limits.modelAllowList",
      "limits.parallelCalls",
      "limits.budget.daily",
    ]);
  });

  test("are none if the same values are sent again", () => {
    const limited = { ...record, limits: { ...NO_LIMITS, modelAllowList: ["a/b"] } };
    expect(changedFields(limited, structuredClone(limited))).toEqual([]);
  });
});
