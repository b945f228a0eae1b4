import { rfc3339 } from "@fairlead/protocol/values/clock";
import type { Kysely } from "kysely";
import type { Database } from "../db/tables/schema.ts";
import type { ReviewFacts } from "./restore-review.ts";

/** A store that is replaced, or takes the place of one: what counts of it, and what must not come back with it. */
export class RestoreStore {
  readonly #db: Kysely<Database>;

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  async facts(): Promise<ReviewFacts> {
    const db = this.#db;
    const [projects, users, members, balances] = await Promise.all([
      db.selectFrom("project").select(["id", "name"]).execute(),
      db.selectFrom("user").select(["id", "email"]).execute(),
      db.selectFrom("member").select(["project_id", "user_id", "role"]).execute(),
      db.selectFrom("project_balance").selectAll().execute(),
    ]);
    const signing = db.selectFrom("signing_key").select("id").where("retired_at", "is", null);
    return {
      projects: new Map(projects.map(({ id, name }) => [id, name])),
      users: new Map(users.map(({ id, email }) => [id, email])),
      members: new Map(members.map((row) => [`${row.project_id} ${row.user_id}`, row.role])),
      balances: new Map(balances.map((row) => [row.project_id, row.balance])),
      signingKeyId: (await signing.executeTakeFirst())?.id ?? "",
      ...(await this.#credentials()),
      ...(await this.#agents()),
      secrets: await this.#secrets("node_secret"),
      agentSecrets: await this.#secrets("agent_secret"),
    };
  }

  async #agents(): Promise<Pick<ReviewFacts, "agents">> {
    const columns = ["id", "name", "project_id", "wanted", "node_id", "limits"] as const;
    const agents = await this.#db.selectFrom("agent").select(columns).execute();
    return {
      agents: new Map(
        agents.map(({ id, name, project_id: projectId, wanted, node_id, limits }) => [
          id,
          { name, projectId, terms: JSON.stringify([wanted, node_id, limits]) },
        ]),
      ),
    };
  }

  async #secrets(table: "node_secret" | "agent_secret"): Promise<ReadonlyMap<string, number>> {
    const secrets = this.#db.selectFrom(table).select(["owner_id", "name", "updated_at"]).where("deleted", "=", 0);
    return new Map((await secrets.execute()).map((row) => [`${row.owner_id} ${row.name}`, row.updated_at]));
  }

  async #credentials(): Promise<Pick<ReviewFacts, "keys" | "nodes" | "providers">> {
    const db = this.#db;
    const [keys, nodes, providers] = await Promise.all([
      db
        .selectFrom("project_key")
        .select(["id", "name", "project_id", "secret_hash", "enabled", "expires_at", "limits"])
        .execute(),
      db.selectFrom("node").select(["id", "name", "project_id", "signing_key"]).execute(),
      db.selectFrom("provider").select(["project_id", "name", "updated_at"]).execute(),
    ]);
    return {
      keys: new Map(
        keys.map(({ id, name, project_id: projectId, secret_hash: secretHash, enabled, expires_at, limits }) => [
          id,
          { name, projectId, secretHash, terms: JSON.stringify([enabled, expires_at, limits]) },
        ]),
      ),
      nodes: new Map(
        nodes.map((row) => [row.id, { name: row.name, projectId: row.project_id, signingKey: row.signing_key }]),
      ),
      providers: new Map(providers.map((row) => [`${row.project_id} ${row.name}`, row.updated_at])),
    };
  }

  /**
   * Makes it another life of the installation: daemons follow a new epoch whatever generation they hold, and nothing that was
   * ended or used since the backup lets anybody in again. In a transaction of the caller's.
   */
  async beginEpoch(epoch: string, now: number): Promise<{ readonly sessions: number; readonly links: number }> {
    const db = this.#db;
    await db.updateTable("installation").set({ epoch }).execute();
    for (const table of ["oauthRefreshToken", "deviceCode", "verification"] as const)
      await db.deleteFrom(table).execute();
    const sessions = await db.deleteFrom("session").where("expiresAt", ">", rfc3339(now)).executeTakeFirstOrThrow();
    await db.deleteFrom("session").execute();
    const links = await db
      .updateTable("one_time_link")
      .set({ revoked_at: now })
      .where("used_at", "is", null)
      .where("revoked_at", "is", null)
      .where("expires_at", ">", now)
      .executeTakeFirstOrThrow();
    await db
      .updateTable("bootstrap_token")
      .set({ voided_at: now })
      .where("used_by", "is", null)
      .where("voided_at", "is", null)
      .execute();
    return { sessions: Number(sessions.numDeletedRows), links: Number(links.numUpdatedRows) };
  }
}
