import type { Kysely, Selectable, SelectQueryBuilder } from "kysely";
import type { AuditEventTable, Database } from "../db/schema.ts";
import { type AuditEventRecord, actorTypeSchema, auditActionSchema, auditDetailSchema } from "./audit.ts";

/** All of them together; undefined: any. Times are Unix milliseconds. */
export interface AuditFilter {
  readonly projectId?: string | undefined;
  readonly action?: string | undefined;
  readonly actorId?: string | undefined;
  /** From this moment on. */
  readonly from?: number | undefined;
  /** Before this moment. */
  readonly to?: number | undefined;
}

type Rows = SelectQueryBuilder<Database, "audit_event", Selectable<AuditEventTable>>;

/** Rows are only ever added, and removed by age. They outlive the project and the people that they tell of. */
export class AuditStore {
  readonly #db: Kysely<Database>;

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  /** A user's e-mail address is kept as it is now. */
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

  /** One project's, the newest first. */
  async list(
    projectId: string,
    filter: AuditFilter,
    page: { readonly limit: number; readonly after: string | null },
  ): Promise<AuditEventRecord[]> {
    return this.listAll({ ...filter, projectId }, page);
  }

  /** Of every project and of none, the newest first. */
  async listAll(
    filter: AuditFilter,
    page: { readonly limit: number; readonly after: string | null },
  ): Promise<AuditEventRecord[]> {
    let query = filtered(this.#db.selectFrom("audit_event").selectAll(), filter);
    if (page.after !== null) query = query.where("id", "<", page.after);
    const rows = await query.orderBy("id", "desc").limit(page.limit).execute();
    return rows.map(fromRow);
  }

  /** A bounded number of the oldest. @returns how many. */
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
