import { createHash } from "node:crypto";
import { rfc3339 } from "@fairlead/protocol/clock";
import type { KeyLimits, ProjectKey } from "@fairlead/protocol/resources";
import { z } from "zod";
import { changedLimits } from "./key-limits.ts";

/** What a project key is: its record, what callers may set of it, and how the API tells it. Pure. */

/** Times are Unix milliseconds. */
export interface KeyRecord {
  readonly id: string;
  readonly projectId: string;
  /** Who made it. */
  readonly userId: string;
  readonly name: string;
  /** The part of the key that logs and lists show. */
  readonly publicId: string;
  /** SHA-256 (hex) of the whole key; the key itself is kept nowhere. */
  readonly secretHash: string;
  readonly enabled: boolean;
  readonly expiresAt: number | null;
  readonly limits: KeyLimits;
  /** With either secret; to about a minute. */
  readonly lastUsedAt: number | null;
  readonly previous: PreviousSecret | null;
  readonly createdAt: number;
}

/** The secret before a rotation; it works until its end. */
export interface PreviousSecret {
  readonly publicId: string;
  readonly secretHash: string;
  readonly endsAt: number;
  readonly lastUsedAt: number | null;
}

/** What people change of a key. */
export type KeySettings = Pick<KeyRecord, "name" | "enabled" | "expiresAt" | "limits">;

export const DEFAULT_OVERLAP_SECONDS = 24 * 3600;
export const MAX_OVERLAP_SECONDS = 30 * 24 * 3600;

export const overlapSchema = z
  .int("must be a whole number of seconds")
  .min(0, "must not be negative")
  .max(MAX_OVERLAP_SECONDS, `must be at most ${MAX_OVERLAP_SECONDS} (30 days)`);

export function hashKey(value: string): string {
  return createHash("sha256").update(value).digest("hex");
}

/** What it takes to change a key: whoever may make keys changes those that they made, others' keys are managed. */
export function operationToChange(key: Pick<KeyRecord, "userId">, callerId: string): "key.create" | "key.manage" {
  return key.userId === callerId ? "key.create" : "key.manage";
}

/** @returns names of what differs, `limits.budget.daily` for instance: what the audit log keeps of a change. */
export function changedFields(before: KeySettings, after: KeySettings): readonly string[] {
  const own = (["name", "enabled", "expiresAt"] as const).filter((field) => before[field] !== after[field]);
  return [...own, ...changedLimits(before.limits, after.limits).map((limit) => `limits.${limit}`)];
}

/** The key with another secret. The one before works on until `endsAt`; null: it ends now, as does any older one. */
export function rotated(
  key: KeyRecord,
  secret: { readonly publicId: string; readonly secretHash: string; readonly endsAt: number | null },
): KeyRecord {
  const { endsAt, ...current } = secret;
  const { publicId, secretHash, lastUsedAt } = key;
  return { ...key, ...current, previous: endsAt === null ? null : { publicId, secretHash, endsAt, lastUsedAt } };
}

export interface KeyTelling {
  /** Unix milliseconds: a previous secret is told of while it works. */
  readonly now: number;
  /** By default nothing. */
  readonly spent?: ProjectKey["spent"] | undefined;
  /** Only in the answer that makes it. */
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
