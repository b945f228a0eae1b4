import type { Kysely } from "kysely";
import { type Stores, storesOn } from "../../../installation/db/stores-on.ts";
import type { Database } from "../../../installation/db/tables/schema.ts";
import { AgentEventStore } from "./agent-event-store.ts";
import { AgentStore } from "./agent-store.ts";

const openStores = (db: Kysely<Database>) => ({
  agents: new AgentStore(db),
  events: new AgentEventStore(db),
});

export type AgentStores = Stores<ReturnType<typeof openStores>>;

export const agentStores = (db: Kysely<Database>): AgentStores => storesOn(db, openStores);
