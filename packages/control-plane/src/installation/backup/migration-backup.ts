import { join } from "node:path";
import { type Clock, rfc3339 } from "@fairlead/protocol/values/clock";
import { systemIds } from "@fairlead/protocol/values/ids";
import type { Kysely } from "kysely";
import { type Migration, migrationState } from "../db/migrations/migrate.ts";
import type { StoreLocation } from "../db/open.ts";
import type { Database } from "../db/tables/schema.ts";
import { packSnapshot, removeOutdated } from "./pack-snapshot.ts";
import { takeSnapshot } from "./snapshot.ts";

export interface MigrationBackup {
  readonly dataDir: string;
  readonly masterKeyFile: string;
  readonly database: { readonly backupBeforeMigration: boolean };
  readonly location: StoreLocation;
  readonly db: Kysely<Database>;
  readonly clock: Clock;
  readonly migrations?: readonly Migration[];
}

const KEEP = 3;

/** So that an upgrade can be undone: no step of the schema leads back. @returns the file; null where nothing will change. @throws StartError */
export async function backupBeforeMigration(options: MigrationBackup): Promise<string | null> {
  const { dataDir, location, db, clock, migrations } = options;
  if (!options.database.backupBeforeMigration) return null;
  const { applied, missing } = await migrationState(db, migrations);
  if (applied.length === 0 || missing.length === 0) return null;
  const folder = join(dataDir, "backups");
  const snapshot = await takeSnapshot({ dataDir, location, db, ids: systemIds(() => clock.now()) });
  const { file } = await packSnapshot({
    snapshot,
    createdAt: rfc3339(clock.now()),
    alsoKeep: [options.masterKeyFile],
    target: { folder },
    onProgress: () => undefined,
  });
  await removeOutdated(folder, snapshot.facts.installationId, KEEP);
  return file;
}
