import type { Project } from "@fairlead/protocol/resources";
import { rfc3339 } from "@fairlead/protocol/values/clock";
import type { AuditResource } from "../../access/audit/audit.ts";

/** Project types and names. Pure. */

export interface ProjectRecord {
  readonly id: string;
  /** The creator. Never changes; the current owners are in the member table. */
  readonly userId: string;
  readonly name: string;
  /** Unix milliseconds, like the others. */
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Null unless the project is being deleted. */
  readonly deletingSince: number | null;
  /** Model for calls that name none; null: the server's default. */
  readonly defaultModel: string | null;
}

/** Compares names in normalized form, because keyboards compose accents differently. */
export function isNameOf({ name }: Pick<ProjectRecord, "name">, text: string): boolean {
  return name.normalize("NFC") === text.trim().normalize("NFC");
}

export function toProject(record: ProjectRecord): Project {
  return {
    id: record.id,
    userId: record.userId,
    name: record.name,
    createdAt: rfc3339(record.createdAt),
    updatedAt: rfc3339(record.updatedAt),
    ...(record.defaultModel === null ? {} : { defaultModel: record.defaultModel }),
    ...(record.deletingSince === null ? {} : { deletingSince: rfc3339(record.deletingSince) }),
  };
}

/** The project as it appears in the audit log. */
export function projectResource({ id, name }: Pick<ProjectRecord, "id" | "name">): AuditResource {
  return { type: "project", id, name };
}
