import { type Condition, conditionSchema } from "@fairlead/protocol/conditions";
import { type DaemonUpdate, daemonUpdateSchema } from "@fairlead/protocol/daemon-updates";
import { engineConfigSchema } from "@fairlead/protocol/engine-config";
import { sealingPublicKeySchema, signingPublicKeySchema } from "@fairlead/protocol/enrollment";
import { NODE_STATUSES, type NodeStatus, nodeStatusSchema } from "@fairlead/protocol/resources";
import type { CompiledQuery, Insertable, Kysely, Selectable, Updateable } from "kysely";
import { z } from "zod";
import type { NodeTable } from "../../../installation/db/tables/node-tables.ts";
import type { Database } from "../../../installation/db/tables/schema.ts";
import type { NodeRecord } from "../node.ts";

/** Rows of one statement: both databases bound how many values one may carry. */
const CHUNK = 256;

/** Rows of `node`. Methods with a project id touch that project's rows only; those without serve the daemon's own credential. */
export class NodeStore {
  readonly #db: Kysely<Database>;

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  async insert(record: NodeRecord): Promise<void> {
    await this.#db.insertInto("node").values(toRow(record)).execute();
  }

  async find(id: string): Promise<NodeRecord | null> {
    const row = await this.#db.selectFrom("node").selectAll().where("id", "=", id).executeTakeFirst();
    return row ? fromRow(row) : null;
  }

  /** Holds the row until the transaction ends, the same on both databases: SQLite has no `for update`. */
  async findForUpdate(id: string): Promise<NodeRecord | null> {
    const row = await this.#db
      .updateTable("node")
      .set((eb) => ({ created_at: eb.ref("created_at") }))
      .where("id", "=", id)
      .returningAll()
      .executeTakeFirst();
    return row ? fromRow(row) : null;
  }

  async findByIdentifier(projectId: string, identifier: string): Promise<NodeRecord | null> {
    const row = await this.#db
      .selectFrom("node")
      .selectAll()
      .where("project_id", "=", projectId)
      .where("identifier", "=", identifier)
      .executeTakeFirst();
    return row ? fromRow(row) : null;
  }

  async isProjectDeleting(projectId: string): Promise<boolean> {
    const query = this.#db.selectFrom("project").select("deleting_since").where("id", "=", projectId);
    const row = await query.executeTakeFirst();
    return row !== undefined && row.deleting_since !== null;
  }

  async countActive(projectIds: readonly string[]): Promise<number> {
    if (projectIds.length === 0) return 0;
    const row = await this.#db
      .selectFrom("node")
      .select((eb) => eb.fn.countAll().as("count"))
      .where("project_id", "in", projectIds)
      .where("status", "=", "active" satisfies NodeStatus)
      .executeTakeFirstOrThrow();
    return Number(row.count);
  }

  /** Of all projects, for the operator's figures. */
  async countByStatus(): Promise<Readonly<Record<NodeStatus, number>>> {
    const rows = await this.#db
      .selectFrom("node")
      .select((eb) => ["status", eb.fn.countAll().as("count")] as const)
      .groupBy("status")
      .execute();
    const counts = new Map(rows.map(({ status, count }) => [status, Number(count)]));
    return Object.fromEntries(NODE_STATUSES.map((status) => [status, counts.get(status) ?? 0])) as Record<
      NodeStatus,
      number
    >;
  }

  async setConfig(projectId: string, id: string, config: Pick<NodeRecord, "name" | "engineConfig">): Promise<void> {
    await this.#db
      .updateTable("node")
      .set({ name: config.name, engine_config: JSON.stringify(config.engineConfig) })
      .where("project_id", "=", projectId)
      .where("id", "=", id)
      .execute();
  }

  async delete(projectId: string, id: string): Promise<void> {
    await this.#db.deleteFrom("node").where("project_id", "=", projectId).where("id", "=", id).execute();
  }

  /** Newest last; `after` is the last id of the page before. */
  async list(
    projectId: string,
    page: { readonly limit: number; readonly after: string | null },
  ): Promise<NodeRecord[]> {
    let query = this.#db
      .selectFrom("node")
      .selectAll()
      .where("project_id", "=", projectId)
      .orderBy("id")
      .limit(page.limit);
    if (page.after !== null) query = query.where("id", ">", page.after);
    return (await query.execute()).map(fromRow);
  }

  /** Of one project, or of all. */
  async ids(projectId: string | null): Promise<{ readonly id: string; readonly projectId: string }[]> {
    let query = this.#db.selectFrom("node").select(["id", "project_id as projectId"]);
    if (projectId !== null) query = query.where("project_id", "=", projectId);
    return query.execute();
  }

  /** Of one project, or of all. */
  async count(projectId: string | null): Promise<number> {
    let query = this.#db.selectFrom("node").select((eb) => eb.fn.countAll().as("count"));
    if (projectId !== null) query = query.where("project_id", "=", projectId);
    return Number((await query.executeTakeFirstOrThrow()).count);
  }

  async listByStatus(statuses: readonly NodeStatus[]): Promise<NodeRecord[]> {
    const rows = await this.#db.selectFrom("node").selectAll().where("status", "in", statuses).execute();
    return rows.map(fromRow);
  }

  /** The same without what else is known of them. */
  async idsByStatus(statuses: readonly NodeStatus[]): Promise<string[]> {
    const rows = await this.#db.selectFrom("node").select("id").where("status", "in", statuses).execute();
    return rows.map(({ id }) => id);
  }

  async setStatus(
    id: string,
    status: { readonly status: NodeStatus; readonly message: string; readonly since: number },
  ): Promise<void> {
    await this.#update(id, { status: status.status, status_message: status.message, status_since: status.since });
  }

  async setStatusMessage(id: string, message: string): Promise<void> {
    await this.#update(id, { status_message: message });
  }

  async setEnrolled(id: string, enrolled: EnrolledFacts): Promise<void> {
    await this.#update(id, {
      signing_key: JSON.stringify(enrolled.signingKey),
      sealing_key: JSON.stringify(enrolled.sealingKey),
      enrolled_at: enrolled.at,
      daemon_version: enrolled.daemonVersion,
      operating_system: enrolled.operatingSystem,
      public_ip: enrolled.publicIp,
      last_seen_at: enrolled.at,
    });
  }

  async setPublicIp(id: string, publicIp: string): Promise<void> {
    await this.#update(id, { public_ip: publicIp });
  }

  async setOperatingSystem(id: string, operatingSystem: string): Promise<void> {
    await this.#db
      .updateTable("node")
      .set({ operating_system: operatingSystem })
      .where("id", "=", id)
      .where("operating_system", "!=", operatingSystem)
      .execute();
  }

  async setConditions(id: string, conditions: readonly Condition[]): Promise<void> {
    await this.#update(id, { conditions: JSON.stringify(conditions) });
  }

  async setDaemonUpdate(id: string, update: DaemonUpdate | null): Promise<void> {
    await this.#update(id, { daemon_update: update && JSON.stringify(update) });
  }

  async setDrainUntil(id: string, until: number): Promise<void> {
    await this.#update(id, { drain_until: until });
  }

  async setRestarts(id: string, restarts: number): Promise<void> {
    await this.#update(id, { restarts });
  }

  async setConnectors(id: string, connectors: readonly string[]): Promise<void> {
    await this.#update(id, { connectors: JSON.stringify(connectors) });
  }

  async setDaemonVersion(id: string, daemonVersion: string): Promise<void> {
    await this.#db
      .updateTable("node")
      .set({ daemon_version: daemonVersion })
      .where("id", "=", id)
      .where("daemon_version", "!=", daemonVersion)
      .execute();
  }

  /** What says of these nodes that they were heard. */
  seenStatements(ids: readonly string[], at: number): readonly CompiledQuery[] {
    const chunks = Array.from({ length: Math.ceil(ids.length / CHUNK) }, (_, n) =>
      ids.slice(n * CHUNK, (n + 1) * CHUNK),
    );
    return chunks.map((chunk) =>
      this.#db.updateTable("node").set({ last_seen_at: at }).where("id", "in", chunk).compile(),
    );
  }

  async #update(id: string, values: Updateable<NodeTable>): Promise<void> {
    await this.#db.updateTable("node").set(values).where("id", "=", id).execute();
  }
}

export interface EnrolledFacts {
  readonly at: number;
  readonly signingKey: NonNullable<NodeRecord["signingKey"]>;
  readonly sealingKey: NonNullable<NodeRecord["sealingKey"]>;
  readonly daemonVersion: string;
  readonly operatingSystem: string;
  readonly publicIp: string;
}

function toRow(record: NodeRecord): Insertable<NodeTable> {
  return {
    id: record.id,
    project_id: record.projectId,
    user_id: record.userId,
    name: record.name,
    identifier: record.identifier,
    plan_id: record.planId,
    status: record.status,
    status_message: record.statusMessage,
    status_since: record.statusSince,
    public_ip: record.publicIp,
    operating_system: record.operatingSystem,
    direct_secrets: record.directSecrets ? 1 : 0,
    connectors: JSON.stringify(record.connectors),
    engine_config: JSON.stringify(record.engineConfig),
    signing_key: record.signingKey && JSON.stringify(record.signingKey),
    sealing_key: record.sealingKey && JSON.stringify(record.sealingKey),
    enrolled_at: record.enrolledAt,
    daemon_version: record.daemonVersion,
    last_seen_at: record.lastSeenAt,
    conditions: JSON.stringify(record.conditions),
    drain_until: record.drainUntil,
    restarts: record.restarts,
    daemon_update: record.daemonUpdate && JSON.stringify(record.daemonUpdate),
    created_at: record.createdAt,
  };
}

function fromRow(row: Selectable<NodeTable>): NodeRecord {
  return {
    id: row.id,
    projectId: row.project_id,
    userId: row.user_id,
    name: row.name,
    identifier: row.identifier,
    planId: row.plan_id,
    status: nodeStatusSchema.parse(row.status),
    statusMessage: row.status_message,
    statusSince: row.status_since,
    publicIp: row.public_ip,
    operatingSystem: row.operating_system,
    directSecrets: row.direct_secrets === 1,
    connectors: z.array(z.string()).parse(JSON.parse(row.connectors)),
    engineConfig: engineConfigSchema.nullable().parse(JSON.parse(row.engine_config)),
    signingKey: row.signing_key === null ? null : signingPublicKeySchema.parse(JSON.parse(row.signing_key)),
    sealingKey: row.sealing_key === null ? null : sealingPublicKeySchema.parse(JSON.parse(row.sealing_key)),
    enrolledAt: row.enrolled_at,
    daemonVersion: row.daemon_version,
    lastSeenAt: row.last_seen_at,
    conditions: z.array(conditionSchema).parse(JSON.parse(row.conditions)),
    drainUntil: row.drain_until,
    restarts: row.restarts,
    daemonUpdate: row.daemon_update === null ? null : daemonUpdateSchema.parse(JSON.parse(row.daemon_update)),
    createdAt: row.created_at,
  };
}
