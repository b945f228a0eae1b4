import { join } from "node:path";
import type { StoreLocation } from "./open.ts";

/** Where an installation's store is. */
export function storeLocation(config: {
  readonly dataDir: string;
  readonly database: { readonly url?: string | undefined };
}): StoreLocation {
  const { url } = config.database;
  return url === undefined ? { file: join(config.dataDir, "fairlead.db") } : { url };
}
