import {
  type WorkloadReport,
  type WorkloadSpec,
  workloadReportSchema,
  workloadSpecSchema,
} from "@fairlead/protocol/workload";
import type { Kysely } from "kysely";
import { z } from "zod";
import type { Database } from "../../../installation/db/tables/schema.ts";

/** A node's desired state (`node_desired`) and its last report (`node_report`). */

export interface DesiredRow {
  readonly generation: number;
  readonly workloads: WorkloadSpec[];
}

export interface NodeReport {
  readonly nodeId: string;
  readonly epoch: string;
  readonly generation: number;
  readonly reports: readonly WorkloadReport[];
  readonly workerImageDigest: string;
  /** "" if a report does not include it: the previous value is kept. */
  readonly lastVersion: string;
  /** When it was first reported. */
  readonly reportedAt: number;
}

const workloadsSchema = z.array(workloadSpecSchema);
const reportsSchema = z.array(workloadReportSchema);

export class NodeReportStore {
  readonly #db: Kysely<Database>;

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  async desired(nodeId: string): Promise<DesiredRow | null> {
    const row = await this.#db.selectFrom("node_desired").selectAll().where("node_id", "=", nodeId).executeTakeFirst();
    return row ? { generation: row.generation, workloads: workloadsSchema.parse(JSON.parse(row.workloads)) } : null;
  }

  async desiredOf(projectId: string): Promise<Map<string, DesiredRow>> {
    const rows = await this.#db
      .selectFrom("node_desired")
      .innerJoin("node", "node.id", "node_desired.node_id")
      .selectAll("node_desired")
      .where("node.project_id", "=", projectId)
      .execute();
    return new Map(
      rows.map(({ node_id, generation, workloads }) => [
        node_id,
        { generation, workloads: workloadsSchema.parse(JSON.parse(workloads)) },
      ]),
    );
  }

  /** Writes the next generation, starting at 1. */
  async setDesired(nodeId: string, workloads: readonly WorkloadSpec[]): Promise<void> {
    const values = { workloads: JSON.stringify(workloads) };
    await this.#db
      .insertInto("node_desired")
      .values({ node_id: nodeId, generation: 1, ...values })
      .onConflict((conflict) =>
        conflict
          .column("node_id")
          .doUpdateSet((eb) => ({ generation: eb("node_desired.generation", "+", 1), ...values })),
      )
      .execute();
  }

  /** Same workloads, new generation: daemons evaluate them again but restart nothing. */
  async renewDesired(nodeId: string): Promise<void> {
    await this.#db
      .updateTable("node_desired")
      .set((eb) => ({ generation: eb("generation", "+", 1) }))
      .where("node_id", "=", nodeId)
      .execute();
  }

  async report(nodeId: string): Promise<NodeReport | null> {
    const row = await this.#db.selectFrom("node_report").selectAll().where("node_id", "=", nodeId).executeTakeFirst();
    return row ? fromRow(row) : null;
  }

  async reportsOf(projectId: string): Promise<Map<string, NodeReport>> {
    const rows = await this.#db
      .selectFrom("node_report")
      .innerJoin("node", "node.id", "node_report.node_id")
      .selectAll("node_report")
      .where("node.project_id", "=", projectId)
      .execute();
    return new Map(rows.map((row) => [row.node_id, fromRow(row)]));
  }

  /** Does not write an unchanged report, because a whole fleet may report simultaneously. @returns whether anything changed. */
  async setReport(report: NodeReport): Promise<boolean> {
    const told = {
      epoch: report.epoch,
      generation: report.generation,
      reports: JSON.stringify(report.reports),
      worker_image_digest: report.workerImageDigest,
      ...(report.lastVersion === "" ? {} : { last_version: report.lastVersion }),
    };
    const values = { ...told, reported_at: report.reportedAt };
    const written = await this.#db
      .insertInto("node_report")
      .values({ node_id: report.nodeId, last_version: "", ...values })
      .onConflict((conflict) =>
        conflict
          .column("node_id")
          .doUpdateSet(values)
          .where((eb) =>
            eb.or(
              Object.entries(told).map(([column, value]) =>
                eb(`node_report.${column as keyof typeof told}`, "!=", value),
              ),
            ),
          ),
      )
      .returning("node_id")
      .executeTakeFirst();
    return written !== undefined;
  }
}

function fromRow(row: Database["node_report"]): NodeReport {
  return {
    nodeId: row.node_id,
    epoch: row.epoch,
    generation: row.generation,
    reports: reportsSchema.parse(JSON.parse(row.reports)),
    workerImageDigest: row.worker_image_digest,
    lastVersion: row.last_version,
    reportedAt: row.reported_at,
  };
}
