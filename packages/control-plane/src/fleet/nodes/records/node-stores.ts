import { type SigningPublicKey, signingPublicKeySchema } from "@fairlead/protocol/enrollment";
import type { Kysely } from "kysely";
import { type Stores, storesOn } from "../../../installation/db/stores-on.ts";
import type { Database } from "../../../installation/db/tables/schema.ts";
import { DaemonVersionStore } from "../desired/daemon-version-store.ts";
import { BootstrapTokenStore } from "./bootstrap-token-store.ts";
import { NodeEventStore } from "./node-event-store.ts";
import { NodeReportStore } from "./node-report-store.ts";
import { NodeStore } from "./node-store.ts";

/** The keys of deleted nodes. They outlive the node's project, so that a daemon that comes back much later still learns its end. */
class DeletedNodeStore {
  readonly #db: Kysely<Database>;

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  async insert(node: { readonly id: string; readonly signingKey: SigningPublicKey }, at: number): Promise<void> {
    await this.#db
      .insertInto("deleted_node")
      .values({ id: node.id, signing_key: JSON.stringify(node.signingKey), deleted_at: at })
      .onConflict((conflict) => conflict.column("id").doNothing())
      .execute();
  }

  async signingKey(id: string): Promise<SigningPublicKey | null> {
    const row = await this.#db.selectFrom("deleted_node").select("signing_key").where("id", "=", id).executeTakeFirst();
    return row ? signingPublicKeySchema.parse(JSON.parse(row.signing_key)) : null;
  }
}

const openStores = (db: Kysely<Database>) => ({
  nodes: new NodeStore(db),
  deleted: new DeletedNodeStore(db),
  daemonVersions: new DaemonVersionStore(db),
  reports: new NodeReportStore(db),
  events: new NodeEventStore(db),
  bootstrapTokens: new BootstrapTokenStore(db),
});

export type NodeStores = Stores<ReturnType<typeof openStores>>;

export const nodeStores = (db: Kysely<Database>): NodeStores => storesOn(db, openStores);
