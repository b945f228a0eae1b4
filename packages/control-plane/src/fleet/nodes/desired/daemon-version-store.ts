import type { Kysely, Selectable } from "kysely";
import type { DaemonVersionTable } from "../../../installation/db/tables/node-tables.ts";
import type { Database } from "../../../installation/db/tables/schema.ts";
import type { DaemonTarget, DaemonVersionSetting } from "./daemon-version.ts";

const FLEET = "fleet";

/** Rows of `desired_daemon`: one for each node, project or fleet with a chosen version. */
export class DaemonVersionStore {
  readonly #db: Kysely<Database>;

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  async set(target: DaemonTarget, version: string, requestedAt: number): Promise<void> {
    const row = { version, requested_at: requestedAt };
    await this.#db
      .insertInto("desired_daemon")
      .values({
        id: idOf(target),
        project_id: target.scope === "fleet" ? null : target.projectId,
        node_id: target.scope === "node" ? target.nodeId : null,
        ...row,
      })
      .onConflict((conflict) => conflict.column("id").doUpdateSet(row))
      .execute();
  }

  async clear(target: DaemonTarget): Promise<void> {
    await this.#db.deleteFrom("desired_daemon").where("id", "=", idOf(target)).execute();
  }

  /** Settings that apply to the target: its own, its project's, the fleet's. */
  async of(target: DaemonTarget): Promise<DaemonVersionSetting[]> {
    const ids = [FLEET];
    if (target.scope !== "fleet") ids.push(target.projectId);
    if (target.scope === "node") ids.push(target.nodeId);
    const rows = await this.#db.selectFrom("desired_daemon").selectAll().where("id", "in", ids).execute();
    return rows.map(fromRow);
  }

  /** Settings that apply to a project's nodes, including each node's own. */
  async ofNodes(projectId: string): Promise<DaemonVersionSetting[]> {
    const rows = await this.#db
      .selectFrom("desired_daemon")
      .selectAll()
      .where((eb) => eb.or([eb("project_id", "=", projectId), eb("id", "=", FLEET)]))
      .execute();
    return rows.map(fromRow);
  }
}

function idOf(target: DaemonTarget): string {
  if (target.scope === "fleet") return FLEET;
  return target.scope === "project" ? target.projectId : target.nodeId;
}

function fromRow(row: Selectable<DaemonVersionTable>): DaemonVersionSetting {
  const { project_id: projectId, node_id: nodeId, version, requested_at: requestedAt } = row;
  const known = { version, requestedAt };
  if (projectId === null) return { target: { scope: "fleet" }, ...known };
  if (nodeId === null) return { target: { scope: "project", projectId }, ...known };
  return { target: { scope: "node", nodeId, projectId }, ...known };
}
