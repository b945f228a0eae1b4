import {
  AGENT_LIFECYCLE_STATES,
  type AgentLifecycleState,
  agentConfigSchema,
  agentLifecycleStateSchema,
  agentRuntimeSchema,
} from "@fairlead/protocol/agents";
import type { KeyLimits } from "@fairlead/protocol/resources";
import type { Insertable, Kysely, Selectable } from "kysely";
import { z } from "zod";
import { limitsFromText } from "../../../access/keys/key-limits.ts";
import type { AgentTable } from "../../../installation/db/tables/agent-tables.ts";
import type { Database } from "../../../installation/db/tables/schema.ts";
import type { AgentRecord } from "../definition/agent.ts";

export interface StorePage {
  readonly limit: number;
  /** The last id of the page before. */
  readonly after: string | null;
}

/** What people write of an agent. */
export type AgentFields = Pick<AgentRecord, "name" | "guest" | "nodeId" | "connectorSlugs" | "config" | "updatedAt">;

/** What the platform writes of it. */
export type AgentProgress = Pick<
  AgentRecord,
  "wanted" | "run" | "placement" | "lifecycleState" | "lifecycleSince" | "observed"
>;

/** Rows of `agent`. Methods with a project id touch that project's rows only; those without serve nodes and credentials. */
export class AgentStore {
  readonly #db: Kysely<Database>;

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  async insert(agent: AgentRecord): Promise<void> {
    await this.#db.insertInto("agent").values(toRow(agent)).execute();
  }

  async find(id: string): Promise<AgentRecord | null> {
    const row = await this.#db.selectFrom("agent").selectAll().where("id", "=", id).executeTakeFirst();
    return row ? fromRow(row) : null;
  }

  /** Holds the row until the transaction ends, the same on both databases: SQLite has no `for update`. */
  async findForUpdate(id: string): Promise<AgentRecord | null> {
    const row = await this.#db
      .updateTable("agent")
      .set((eb) => ({ created_at: eb.ref("created_at") }))
      .where("id", "=", id)
      .returningAll()
      .executeTakeFirst();
    return row ? fromRow(row) : null;
  }

  /** Newest last. */
  async list(projectId: string, { limit, after }: StorePage): Promise<AgentRecord[]> {
    let query = this.#db.selectFrom("agent").selectAll().where("project_id", "=", projectId).orderBy("id").limit(limit);
    if (after !== null) query = query.where("id", ">", after);
    return (await query.execute()).map(fromRow);
  }

  /** Those that run on the node, or may still, by id. */
  async placedOn(nodeId: string): Promise<AgentRecord[]> {
    const rows = await this.#db
      .selectFrom("agent")
      .selectAll()
      .where("placed_node_id", "=", nodeId)
      .orderBy("id")
      .execute();
    return rows.map(fromRow);
  }

  /** Those that are placed on the node, or are to run there. */
  async around(nodeId: string): Promise<{ readonly id: string }[]> {
    return this.#db
      .selectFrom("agent")
      .select("id")
      .where((eb) => eb.or([eb("placed_node_id", "=", nodeId), eb("node_id", "=", nodeId)]))
      .orderBy("id")
      .execute();
  }

  /** How many are placed on the node or are to run there. */
  async countAround(nodeId: string): Promise<number> {
    const { agents } = await this.#db
      .selectFrom("agent")
      .select((eb) => eb.fn.countAll().as("agents"))
      .where((eb) => eb.or([eb("placed_node_id", "=", nodeId), eb("node_id", "=", nodeId)]))
      .executeTakeFirstOrThrow();
    return Number(agents);
  }

  /** Every node on which an agent is placed or is to run, each once. */
  async hosts(): Promise<string[]> {
    const rows = await this.#db
      .selectFrom("agent")
      .select((eb) => eb.fn.coalesce("placed_node_id", "node_id").as("id"))
      .distinct()
      .where((eb) => eb.or([eb("placed_node_id", "is not", null), eb("wanted", "=", 1)]))
      .execute();
    return rows.map(({ id }) => id);
  }

  /** Of all projects, for the operator's figures. */
  async countByState(): Promise<Readonly<Record<AgentLifecycleState, number>>> {
    const rows = await this.#db
      .selectFrom("agent")
      .select((eb) => ["lifecycle_state as state", eb.fn.countAll().as("count")] as const)
      .groupBy("lifecycle_state")
      .execute();
    const counts = new Map(rows.map(({ state, count }) => [state, Number(count)]));
    return Object.fromEntries(AGENT_LIFECYCLE_STATES.map((state) => [state, counts.get(state) ?? 0])) as Record<
      AgentLifecycleState,
      number
    >;
  }

  async setFields(projectId: string, id: string, fields: AgentFields): Promise<void> {
    await this.#db
      .updateTable("agent")
      .set(fieldColumns(fields))
      .where("project_id", "=", projectId)
      .where("id", "=", id)
      .execute();
  }

  async setLimits(projectId: string, id: string, limits: KeyLimits): Promise<void> {
    await this.#db
      .updateTable("agent")
      .set({ limits: JSON.stringify(limits) })
      .where("project_id", "=", projectId)
      .where("id", "=", id)
      .execute();
  }

  async setCourse(projectId: string, id: string, course: AgentProgress): Promise<void> {
    await this.#db
      .updateTable("agent")
      .set(courseColumns(course))
      .where("project_id", "=", projectId)
      .where("id", "=", id)
      .execute();
  }

  async delete(projectId: string, id: string): Promise<void> {
    await this.#db.deleteFrom("agent").where("project_id", "=", projectId).where("id", "=", id).execute();
  }
}

const observedSchema = agentRuntimeSchema.omit({ nodeId: true });

function fieldColumns({ name, guest, nodeId, connectorSlugs, config, updatedAt }: AgentFields) {
  return {
    name,
    guest,
    node_id: nodeId,
    connector_slugs: JSON.stringify(connectorSlugs),
    config: JSON.stringify(config),
    updated_at: updatedAt,
  } satisfies Partial<Insertable<AgentTable>>;
}

function courseColumns({ wanted, run, placement, lifecycleState, lifecycleSince, observed }: AgentProgress) {
  return {
    wanted: wanted ? 1 : 0,
    run,
    placed_node_id: placement?.nodeId ?? null,
    placed_generation: placement?.since ?? null,
    release_generation: placement?.releasedAt ?? null,
    lifecycle_state: lifecycleState,
    lifecycle_since: lifecycleSince,
    observed: JSON.stringify(observed),
  } satisfies Partial<Insertable<AgentTable>>;
}

function toRow(agent: AgentRecord): Insertable<AgentTable> {
  return {
    id: agent.id,
    project_id: agent.projectId,
    user_id: agent.userId,
    limits: JSON.stringify(agent.limits),
    created_at: agent.createdAt,
    ...fieldColumns(agent),
    ...courseColumns(agent),
  };
}

function fromRow(row: Selectable<AgentTable>): AgentRecord {
  const { placed_node_id: placedNodeId, placed_generation: since, release_generation: releasedAt } = row;
  return {
    id: row.id,
    projectId: row.project_id,
    userId: row.user_id,
    name: row.name,
    guest: row.guest,
    nodeId: row.node_id,
    connectorSlugs: z.array(z.string()).parse(JSON.parse(row.connector_slugs)),
    config: agentConfigSchema.parse(JSON.parse(row.config)),
    limits: limitsFromText(row.limits),
    wanted: row.wanted === 1,
    run: row.run,
    placement: placedNodeId === null ? null : { nodeId: placedNodeId, since: since ?? 0, releasedAt },
    lifecycleState: agentLifecycleStateSchema.parse(row.lifecycle_state),
    lifecycleSince: row.lifecycle_since,
    observed: observedSchema.parse(JSON.parse(row.observed)),
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}
