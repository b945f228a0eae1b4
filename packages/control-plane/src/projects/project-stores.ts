import type { Kysely } from "kysely";
import type { Database } from "../db/schema.ts";
import { ProjectStore } from "./project-store.ts";

/** The stores of this room, on one handle or inside one transaction. */
export interface ProjectStores {
  readonly projects: ProjectStore;
  transaction<T>(work: (stores: ProjectStores, transaction: Kysely<Database>) => Promise<T>): Promise<T>;
}

export function projectStores(db: Kysely<Database>): ProjectStores {
  return {
    projects: new ProjectStore(db),
    transaction: (work) => db.transaction().execute((transaction) => work(projectStores(transaction), transaction)),
  };
}
