import type { Kysely } from "kysely";
import { type Stores, storesOn } from "../../installation/db/stores-on.ts";
import type { Database } from "../../installation/db/tables/schema.ts";
import { ProjectNameStore } from "../names/project-name-store.ts";
import { AliasStore } from "./aliases/alias-store.ts";
import { ProviderStore } from "./provider-store.ts";

const openStores = (db: Kysely<Database>) => ({
  providers: new ProviderStore(db),
  aliases: new AliasStore(db),
  names: new ProjectNameStore(db),
});

export type ProviderStores = Stores<ReturnType<typeof openStores>>;

export const providerStores = (db: Kysely<Database>): ProviderStores => storesOn(db, openStores);
