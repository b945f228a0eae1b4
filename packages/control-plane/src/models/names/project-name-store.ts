import type { Kysely } from "kysely";
import type { Database } from "../../installation/db/tables/schema.ts";

export type NameOwner = "node" | "provider" | "alias";

/** First segments of a project's model names: one namespace across three tables (decisions/0018). */
export class ProjectNameStore {
  readonly #db: Kysely<Database>;

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  async list(projectId: string): Promise<ReadonlyMap<string, NameOwner>> {
    const rows = await this.#db
      .selectFrom("node")
      .select((eb) => ["identifier as name", eb.val<NameOwner>("node").as("owner")])
      .where("project_id", "=", projectId)
      .unionAll((eb) =>
        eb
          .selectFrom("provider")
          .select((inner) => ["name", inner.val<NameOwner>("provider").as("owner")])
          .where("project_id", "=", projectId),
      )
      .unionAll((eb) =>
        eb
          .selectFrom("model_alias")
          .select((inner) => ["name", inner.val<NameOwner>("alias").as("owner")])
          .where("project_id", "=", projectId),
      )
      .execute();
    return new Map(rows.map(({ name, owner }) => [name, owner]));
  }
}
