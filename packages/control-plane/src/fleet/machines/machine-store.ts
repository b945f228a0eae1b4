import type { Insertable, Kysely, Selectable, Updateable } from "kysely";
import { z } from "zod";
import type { MachineTable } from "../../installation/db/tables/node-tables.ts";
import type { Database } from "../../installation/db/tables/schema.ts";
import { type MachineRecord, machineStepSchema, OPEN_STEPS } from "./machine.ts";

/** Rows of `machine`. Writers must lock the node's row. */
export class MachineStore {
  readonly #db: Kysely<Database>;

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  async insert(record: MachineRecord): Promise<void> {
    await this.#db.insertInto("machine").values(toRow(record)).execute();
  }

  async find(nodeId: string): Promise<MachineRecord | null> {
    const row = await this.#db.selectFrom("machine").selectAll().where("node_id", "=", nodeId).executeTakeFirst();
    return row ? fromRow(row) : null;
  }

  /** IDs of the nodes whose machines need more work. */
  async open(): Promise<string[]> {
    const rows = await this.#db.selectFrom("machine").select("node_id").where("step", "in", OPEN_STEPS).execute();
    return rows.map((row) => row.node_id);
  }

  /** Of one project or all. */
  async list(projectId: string | null): Promise<MachineRecord[]> {
    let query = this.#db.selectFrom("machine").selectAll().orderBy("node_id");
    if (projectId !== null) query = query.where("project_id", "=", projectId);
    return (await query.execute()).map(fromRow);
  }

  async update(nodeId: string, changes: MachineChanges): Promise<void> {
    const { locations, ...rest } = changes;
    const values: Updateable<MachineTable> = {
      ...(locations === undefined ? {} : { locations: JSON.stringify(locations) }),
      ...Object.fromEntries(
        Object.entries(rest).map(([field, value]) => [COLUMNS[field as keyof typeof COLUMNS], value]),
      ),
    };
    await this.#db.updateTable("machine").set(values).where("node_id", "=", nodeId).execute();
  }
}

export type MachineChanges = Partial<
  Pick<
    MachineRecord,
    "step" | "locations" | "machineId" | "sealedToken" | "sealedBootstrap" | "bootstrapExpiresAt" | "attemptedAt"
  >
>;

const COLUMNS = {
  step: "step",
  machineId: "machine_id",
  sealedToken: "sealed_token",
  sealedBootstrap: "sealed_bootstrap",
  bootstrapExpiresAt: "bootstrap_expires_at",
  attemptedAt: "attempted_at",
} as const satisfies Record<keyof Omit<MachineChanges, "locations">, keyof MachineTable>;

function toRow(record: MachineRecord): Insertable<MachineTable> {
  return {
    node_id: record.nodeId,
    project_id: record.projectId,
    provider: record.provider,
    type: record.type,
    name: record.name,
    step: record.step,
    locations: JSON.stringify(record.locations),
    machine_id: record.machineId,
    sealed_token: record.sealedToken,
    sealed_bootstrap: record.sealedBootstrap,
    bootstrap_expires_at: record.bootstrapExpiresAt,
    attempted_at: record.attemptedAt,
    deadline_at: record.deadlineAt,
  };
}

function fromRow(row: Selectable<MachineTable>): MachineRecord {
  return {
    nodeId: row.node_id,
    projectId: row.project_id,
    provider: row.provider,
    type: row.type,
    name: row.name,
    step: machineStepSchema.parse(row.step),
    locations: z.array(z.string()).parse(JSON.parse(row.locations)),
    machineId: row.machine_id,
    sealedToken: row.sealed_token,
    sealedBootstrap: row.sealed_bootstrap,
    bootstrapExpiresAt: row.bootstrap_expires_at,
    attemptedAt: row.attempted_at,
    deadlineAt: row.deadline_at,
  };
}
