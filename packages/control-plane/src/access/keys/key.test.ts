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
  test("is told with the interface's fields and ours, and its value only where it is made", () => {
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

  test.each(["", "   ", "x".repeat(81), "two\nlines", "nul\0"])("may not be named %j", (name) => {
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

  test("keeps the present secret until its end, and drops the one before", () => {
    const previous = { publicId: "pub", secretHash: record.secretHash, endsAt: 1000, lastUsedAt: 5 };
    expect(rotated(used, next)).toEqual({ ...used, publicId: "pub2", secretHash: "hash2", previous });
    expect(rotated(rotated(used, next), { publicId: "pub3", secretHash: "hash3", endsAt: 2000 }).previous).toEqual({
      publicId: "pub2",
      secretHash: "hash2",
      endsAt: 2000,
      lastUsedAt: 5,
    });
  });

  test("without an overlap leaves no other secret", () => {
    expect(rotated(rotated(used, next), { publicId: "pub3", secretHash: "hash3", endsAt: null }).previous).toBeNull();
  });

  test("shows the secret before it while that works, and not a moment longer", () => {
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

  test.each([-1, 0.5, 30 * 24 * 3600 + 1, "60", null])("takes no overlap of %j", (overlap) => {
    expect(overlapSchema.safeParse(overlap).success).toBe(false);
  });
});

describe("what changed of a key", () => {
  test("is told by the names of the fields", () => {
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

  test("is nothing where the same came again", () => {
    const limited = { ...record, limits: { ...NO_LIMITS, modelAllowList: ["a/b"] } };
    expect(changedFields(limited, structuredClone(limited))).toEqual([]);
  });
});
