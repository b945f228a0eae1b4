import type { Kysely } from "kysely";
import type { Database } from "../db/schema.ts";
import { AliasStore } from "./alias-store.ts";
import { ProjectNameStore } from "./project-name-store.ts";
import { ProviderStore } from "./provider-store.ts";

/** The stores of this room, on one handle or inside one transaction. */
export interface ProviderStores {
  readonly providers: ProviderStore;
  readonly aliases: AliasStore;
  readonly names: ProjectNameStore;
  transaction<T>(work: (stores: ProviderStores, transaction: Kysely<Database>) => Promise<T>): Promise<T>;
}

export function providerStores(db: Kysely<Database>): ProviderStores {
  return {
    providers: new ProviderStore(db),
    aliases: new AliasStore(db),
    names: new ProjectNameStore(db),
    transaction: (work) => db.transaction().execute((tx) => work(providerStores(tx), tx)),
  };
}
