import { rfc3339 } from "@fairlead/protocol/clock";
import type { Project } from "@fairlead/protocol/resources";
import type { AuditResource } from "../audit/audit.ts";

/** What a project is and may be called. Pure. */

export interface ProjectRecord {
  readonly id: string;
  /** The creator, for ever; who owns the project now is its members' affair. */
  readonly userId: string;
  readonly name: string;
  /** Unix milliseconds, like the others. */
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Null for one that goes on. */
  readonly deletingSince: number | null;
  /** What a call means that names no model; null: what the server says. */
  readonly defaultModel: string | null;
}

/** Whether a text is the project's name, however its accents are composed: keyboards differ. */
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

/** The project as the audit log names it. */
export function projectResource({ id, name }: Pick<ProjectRecord, "id" | "name">): AuditResource {
  return { type: "project", id, name };
}
