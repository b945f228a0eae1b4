import type { Kysely } from "kysely";
import { type Stores, storesOn } from "../../installation/db/stores-on.ts";
import type { Database } from "../../installation/db/tables/schema.ts";
import { ProjectStore } from "./project-store.ts";

const openStores = (db: Kysely<Database>) => ({
  projects: new ProjectStore(db),
});

export type ProjectStores = Stores<ReturnType<typeof openStores>>;

export const projectStores = (db: Kysely<Database>): ProjectStores => storesOn(db, openStores);
