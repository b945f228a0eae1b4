import { existsSync } from "node:fs";
import { StartError } from "../process/start-error.ts";
import { migrationState } from "./migrations/migrate.ts";
import { openDatabase } from "./open.ts";
import { storeLocation } from "./store-location.ts";

/**
 * Only a server creates a store. A command without one was started in the wrong folder or without the configuration.
 * @throws StartError
 */
export async function requireStore(config: Parameters<typeof storeLocation>[0]): Promise<void> {
  if (!existsSync(config.dataDir)) throw noStore(config.dataDir);
  const location = storeLocation(config);
  if ("file" in location) {
    if (!existsSync(location.file)) throw noStore(location.file);
    return;
  }
  const opened = openDatabase(location);
  try {
    if ((await migrationState(opened.db)).applied.length === 0) throw noStore("database.url");
  } finally {
    await opened.close();
  }
}

function noStore(where: string): StartError {
  return new StartError(
    `There is no store at ${where}. Pass --config with the server's configuration file, or set FAIRLEAD_CONFIG. The first start of the server creates the store.`,
  );
}
