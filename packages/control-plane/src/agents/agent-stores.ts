import type { Kysely } from "kysely";
import type { Database } from "../db/schema.ts";
import { AgentEventStore } from "./agent-event-store.ts";
import { AgentStore } from "./agent-store.ts";

/** The stores of this room, on one handle or inside one transaction. */
export interface AgentStores {
  readonly agents: AgentStore;
  readonly events: AgentEventStore;
  transaction<T>(work: (stores: AgentStores, transaction: Kysely<Database>) => Promise<T>): Promise<T>;
}

export function agentStores(db: Kysely<Database>): AgentStores {
  return {
    agents: new AgentStore(db),
    events: new AgentEventStore(db),
    transaction: (work) => db.transaction().execute((tx) => work(agentStores(tx), tx)),
  };
}
