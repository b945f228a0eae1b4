import type { Kysely } from "kysely";
import type { Database } from "../db/schema.ts";
import { BootstrapTokenStore } from "./bootstrap-token-store.ts";
import { DeletedNodeStore } from "./deleted-node-store.ts";
import { DesiredDaemonStore } from "./desired-daemon-store.ts";
import { NodeEventStore } from "./node-event-store.ts";
import { NodeReportStore } from "./node-report-store.ts";
import { NodeStore } from "./node-store.ts";

/** The stores of this room, on one handle or inside one transaction. */
export interface NodeStores {
  readonly nodes: NodeStore;
  readonly deleted: DeletedNodeStore;
  readonly desiredDaemons: DesiredDaemonStore;
  readonly reports: NodeReportStore;
  readonly events: NodeEventStore;
  readonly bootstrapTokens: BootstrapTokenStore;
  transaction<T>(work: (stores: NodeStores, transaction: Kysely<Database>) => Promise<T>): Promise<T>;
}

export function nodeStores(db: Kysely<Database>): NodeStores {
  return {
    nodes: new NodeStore(db),
    deleted: new DeletedNodeStore(db),
    desiredDaemons: new DesiredDaemonStore(db),
    reports: new NodeReportStore(db),
    events: new NodeEventStore(db),
    bootstrapTokens: new BootstrapTokenStore(db),
    transaction: (work) => db.transaction().execute((tx) => work(nodeStores(tx), tx)),
  };
}
