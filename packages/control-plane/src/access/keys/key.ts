import { createHash } from "node:crypto";
import type { KeyLimits, ProjectKey } from "@fairlead/protocol/resources";
import { rfc3339 } from "@fairlead/protocol/values/clock";
import { z } from "zod";
import { changedLimits } from "./key-limits.ts";

/** Project keys: record, input and API form. Pure. */

/** Times are Unix milliseconds. */
export interface KeyRecord {
  readonly id: string;
  readonly projectId: string;
  /** The creator. */
  readonly userId: string;
  readonly name: string;
  /** The part of the key shown in logs and lists. */
  readonly publicId: string;
  /** SHA-256 (hex) of the whole key, which is not stored. */
  readonly secretHash: string;
  readonly enabled: boolean;
  readonly expiresAt: number | null;
  readonly limits: KeyLimits;
  /** With either secret; accurate to about a minute. */
  readonly lastUsedAt: number | null;
  readonly previous: PreviousSecret | null;
  readonly createdAt: number;
}

/** The secret before a rotation, which works until its end. */
export interface PreviousSecret {
  readonly publicId: string;
  readonly secretHash: string;
  readonly endsAt: number;
  readonly lastUsedAt: number | null;
}

/** The changeable fields. */
export type KeySettings = Pick<KeyRecord, "name" | "enabled" | "expiresAt" | "limits">;

export const DEFAULT_OVERLAP_SECONDS = 24 * 3600;
export const MAX_OVERLAP_SECONDS = 30 * 24 * 3600;

export const overlapSchema = z
  .int("must be an integer number of seconds")
  .min(0, "must not be negative")
  .max(MAX_OVERLAP_SECONDS, `must be at most ${MAX_OVERLAP_SECONDS} (30 days)`);

export function hashKey(value: string): string {
  return createHash("sha256").update(value).digest("hex");
}

/** The required permission: creators manage their own keys, others need the management permission. */
export function operationToChange(key: Pick<KeyRecord, "userId">, callerId: string): "key.create" | "key.manage" {
  return key.userId === callerId ? "key.create" : "key.manage";
}

/** @returns names of changed fields, for instance `limits.budget.daily`, for the audit log. */
export function changedFields(before: KeySettings, after: KeySettings): readonly string[] {
  const own = (["name", "enabled", "expiresAt"] as const).filter((field) => before[field] !== after[field]);
  return [...own, ...changedLimits(before.limits, after.limits).map((limit) => `limits.${limit}`)];
}

/** The key with a new secret. The current one works until `endsAt`; null: stops now. Older ones stop. */
export function rotated(
  key: KeyRecord,
  secret: { readonly publicId: string; readonly secretHash: string; readonly endsAt: number | null },
): KeyRecord {
  const { endsAt, ...current } = secret;
  const { publicId, secretHash, lastUsedAt } = key;
  return { ...key, ...current, previous: endsAt === null ? null : { publicId, secretHash, endsAt, lastUsedAt } };
}

export interface KeyTelling {
  /** Unix milliseconds. A previous secret is returned only while it works. */
  readonly now: number;
  /** Default: nothing. */
  readonly spent?: ProjectKey["spent"] | undefined;
  /** Only in the response that creates it. */
  readonly keyValue?: string;
}

export function toProjectKey(record: KeyRecord, { now, spent = NOTHING_SPENT, keyValue }: KeyTelling): ProjectKey {
  return {
    id: record.id,
    projectId: record.projectId,
    userId: record.userId,
    name: record.name,
    keyId: record.publicId,
    ...(keyValue === undefined ? {} : { keyValue }),
    createdAt: rfc3339(record.createdAt),
    enabled: record.enabled,
    expiresAt: timeOrNull(record.expiresAt),
    lastUsedAt: timeOrNull(record.lastUsedAt),
    limits: record.limits,
    spent,
    previousSecret: toPreviousSecret(record.previous, now),
  };
}

const NOTHING_SPENT: ProjectKey["spent"] = { total: 0, daily: 0, monthly: 0 };

function toPreviousSecret(previous: PreviousSecret | null, now: number): ProjectKey["previousSecret"] {
  if (previous === null || previous.endsAt <= now) return null;
  const { publicId, endsAt, lastUsedAt } = previous;
  return { keyId: publicId, expiresAt: rfc3339(endsAt), lastUsedAt: timeOrNull(lastUsedAt) };
}

function timeOrNull(at: number | null): string | null {
  return at === null ? null : rfc3339(at);
}
