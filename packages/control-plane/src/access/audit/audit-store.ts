import type { Kysely, Selectable, SelectQueryBuilder } from "kysely";
import type { AuditEventTable, Database } from "../../installation/db/tables/schema.ts";
import { type AuditEventRecord, actorTypeSchema, auditActionSchema, auditDetailSchema } from "./audit.ts";

/** Conditions are combined with AND; undefined matches all. Times are Unix milliseconds. */
export interface AuditFilter {
  readonly projectId?: string | undefined;
  readonly action?: string | undefined;
  readonly actorId?: string | undefined;
  /** Inclusive. */
  readonly from?: number | undefined;
  /** Exclusive. */
  readonly to?: number | undefined;
}

type Rows = SelectQueryBuilder<Database, "audit_event", Selectable<AuditEventTable>>;

/** Rows are only added, and deleted by age. They outlive the projects and users they name. */
export class AuditStore {
  readonly #db: Kysely<Database>;

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  /** Stores the user's current email address. */
  async append(
    event: Omit<AuditEventRecord, "actor"> & { readonly actor: { type: string; id: string } },
  ): Promise<void> {
    const { actor, resource } = event;
    const userId = actor.type === "user" ? actor.id : "";
    await this.#db
      .insertInto("audit_event")
      .values((eb) => ({
        id: event.id,
        at: event.at,
        action: event.action,
        actor_type: actor.type,
        actor_id: actor.id,
        actor_email: eb.selectFrom("user").select("email").where("id", "=", userId),
        project_id: event.projectId,
        resource_type: resource.type,
        resource_id: resource.id,
        resource_name: resource.name,
        address: event.address,
        request_id: event.requestId,
        detail: JSON.stringify(event.detail),
      }))
      .execute();
  }

  /** Of one project, newest first. */
  async list(
    projectId: string,
    filter: AuditFilter,
    page: { readonly limit: number; readonly after: string | null },
  ): Promise<AuditEventRecord[]> {
    return this.listAll({ ...filter, projectId }, page);
  }

  /** Of all projects and of none, newest first. */
  async listAll(
    filter: AuditFilter,
    page: { readonly limit: number; readonly after: string | null },
  ): Promise<AuditEventRecord[]> {
    let query = filtered(this.#db.selectFrom("audit_event").selectAll(), filter);
    if (page.after !== null) query = query.where("id", "<", page.after);
    const rows = await query.orderBy("id", "desc").limit(page.limit).execute();
    return rows.map(fromRow);
  }

  /** Deletes up to `limit` of the oldest. @returns the number deleted. */
  async deleteBefore(at: number, limit: number): Promise<number> {
    const { numDeletedRows } = await this.#db
      .deleteFrom("audit_event")
      .where("id", "in", (eb) => eb.selectFrom("audit_event").select("id").where("at", "<", at).limit(limit))
      .executeTakeFirst();
    return Number(numDeletedRows);
  }
}

function filtered(rows: Rows, { projectId, action, actorId, from, to }: AuditFilter): Rows {
  let query = rows;
  if (projectId !== undefined) query = query.where("project_id", "=", projectId);
  if (action !== undefined) query = query.where("action", "=", action);
  if (actorId !== undefined) query = query.where("actor_id", "=", actorId);
  if (from !== undefined) query = query.where("at", ">=", from);
  if (to !== undefined) query = query.where("at", "<", to);
  return query;
}

function fromRow(row: Selectable<AuditEventTable>): AuditEventRecord {
  return {
    id: row.id,
    at: row.at,
    action: auditActionSchema.parse(row.action),
    actor: { type: actorTypeSchema.parse(row.actor_type), id: row.actor_id, email: row.actor_email },
    projectId: row.project_id,
    resource: { type: row.resource_type, id: row.resource_id, name: row.resource_name },
    address: row.address,
    requestId: row.request_id,
    detail: auditDetailSchema.parse(JSON.parse(row.detail)),
  };
}
