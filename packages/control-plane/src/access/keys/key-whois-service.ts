import { DomainError } from "@fairlead/protocol/errors";
import { type Clock, rfc3339 } from "@fairlead/protocol/values/clock";
import type { Kysely } from "kysely";
import type { Database } from "../../installation/db/tables/schema.ts";
import type { AuditAction } from "../audit/audit.ts";
import { hashKey, type KeyRecord } from "./key.ts";
import { isPublicId, parseKey } from "./key-secret.ts";
import { KeyStore } from "./key-store.ts";

/** Explains to the operator why a key is rejected. Callers never see the reason. */

export interface WhoisInput {
  /** A whole key, or its public part: the 16 characters after `flk_`. */
  readonly text: string;
}

export interface WhoisReport {
  readonly publicId: string;
  /** `replaced`: the key was rotated. `wrong_value`: a whole key with the wrong secret. */
  readonly state: "good" | "disabled" | "expired" | "replaced" | "deleted" | "wrong_value" | "unknown";
  /** When it entered this state, if known; RFC 3339. */
  readonly since: string | null;
  /** Email address of the user who did it, if known. */
  readonly by: string | null;
  /** Null for an unknown key. */
  readonly key: {
    readonly id: string;
    readonly name: string;
    readonly projectId: string;
    readonly lastUsedAt: string | null;
  } | null;
}

/** @throws DomainError invalid_request for other text, which is not repeated */
export async function whoisKey(db: Kysely<Database>, { text }: WhoisInput, clock: Clock): Promise<WhoisReport> {
  const { publicId, value } = readInput(text.trim());
  const key = await new KeyStore(db).findByPublicId(publicId);
  if (key === null) return fromAudit(db, publicId);
  const report = { publicId, key: tell(key), since: null, by: null };
  const { previous } = key;
  const isPrevious = previous?.publicId === publicId;
  if (value !== null && hashKey(value) !== (isPrevious ? previous.secretHash : key.secretHash))
    return { ...report, state: "wrong_value" };
  if (!key.enabled) return { ...report, state: "disabled", ...(await lastEvent(db, key.id, "key.disable")) };
  const now = clock.now();
  if (key.expiresAt !== null && key.expiresAt <= now)
    return { ...report, state: "expired", since: rfc3339(key.expiresAt) };
  if (isPrevious && previous.endsAt <= now) return { ...report, state: "replaced", since: rfc3339(previous.endsAt) };
  return { ...report, state: "good" };
}

function readInput(text: string): { readonly publicId: string; readonly value: string | null } {
  if (isPublicId(text)) return { publicId: text, value: null };
  const whole = parseKey(text);
  if (whole !== null) return { publicId: whole.publicId, value: text };
  throw new DomainError(
    "invalid_request",
    "This is neither a complete project key (`flk_…`; check that it was copied in full) nor the public part of one (16 characters).",
  );
}

function tell({ id, name, projectId, lastUsedAt }: KeyRecord): NonNullable<WhoisReport["key"]> {
  return { id, name, projectId, lastUsedAt: lastUsedAt === null ? null : rfc3339(lastUsedAt) };
}

/** For a deleted key: as far back as the audit log goes. */
async function fromAudit(db: Kysely<Database>, publicId: string): Promise<WhoisReport> {
  const rows = await db
    .selectFrom("audit_event")
    .select(["resource_id", "resource_name", "project_id"])
    .where("resource_type", "=", "key")
    // A public part contains only letters and digits, so it cannot be a pattern.
    .where("detail", "like", `%${publicId}%`)
    .orderBy("id")
    .execute();
  const made = rows.at(0);
  if (made === undefined) return { publicId, state: "unknown", since: null, by: null, key: null };
  const { resource_id: id, resource_name: name, project_id: projectId } = made;
  const key = { id, name, projectId: projectId ?? "", lastUsedAt: null };
  const current = projectId === null ? null : await new KeyStore(db).find(projectId, id);
  // The key still exists with another value.
  if (current !== null)
    return { publicId, state: "replaced", ...(await lastEvent(db, id, "key.rotate")), key: tell(current) };
  return { publicId, state: "deleted", ...(await lastEvent(db, id, "key.delete")), key };
}

async function lastEvent(
  db: Kysely<Database>,
  keyId: string,
  action: AuditAction,
): Promise<Pick<WhoisReport, "since" | "by">> {
  const row = await db
    .selectFrom("audit_event")
    .select(["at", "actor_email"])
    .where("resource_type", "=", "key")
    .where("resource_id", "=", keyId)
    .where("action", "=", action)
    .orderBy("id", "desc")
    .limit(1)
    .executeTakeFirst();
  return { since: row ? rfc3339(row.at) : null, by: row?.actor_email ?? null };
}
