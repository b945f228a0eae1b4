import type { DaemonLog } from "../process/log.ts";
import type { DurableRecord } from "../state/durable-record.ts";
import type { FileLayer } from "../state/files.ts";
import type { FolderLayer } from "./folder-layer.ts";
import type { Installed } from "./install-layout.ts";
import { type StartOf, startOf } from "./trial-rules.ts";
import { NO_UPDATES, type UpdateRecord, updateRecordIn } from "./update-record.ts";
import { VersionsFolder } from "./versions-folder.ts";

/** State of updates at startup. */
export interface UpdatesAtStart {
  readonly record: DurableRecord<UpdateRecord>;
  /** Null if the program cannot update itself because it is not an installed build. */
  readonly versions: VersionsFolder | null;
  readonly start: StartOf;
}

export interface OpenUpdatesDeps {
  readonly files: FileLayer;
  readonly folders: FolderLayer;
  readonly stateDir: string;
  readonly installed: Installed | null;
  /** RFC 3339. */
  readonly now: string;
  readonly log: DaemonLog;
}

/** Loads the update state of earlier runs and completes it. Runs first, because a version on trial may crash anywhere. */
export async function openUpdates(deps: OpenUpdatesDeps): Promise<UpdatesAtStart> {
  const { files, folders, stateDir, installed, now, log } = deps;
  const record = updateRecordIn(files, stateDir);
  const { value, damaged } = await record.load();
  if (damaged) log.error("the update record is damaged");
  if (installed === null) return { record, versions: null, start: settled(value ?? NO_UPDATES) };
  const versions = new VersionsFolder(installed, folders);
  const turnedBack = await versions.hasTurnedBack();
  const start = startOf(value ?? NO_UPDATES, { version: installed.version, turnedBack, now });
  if (start.kind === "on-trial") {
    log.warn({ version: installed.version, before: start.trial.from }, "this version is on trial");
    return { record, versions, start };
  }
  if (start.rolledBack !== null) log.error(start.rolledBack, "a newer version failed; this version is running again");
  if (value !== null && (value.trial !== null || start.rolledBack !== null)) await record.save(start.record);
  // After the record was saved.
  await versions.dropGuard();
  return { record, versions, start };
}

function settled(record: UpdateRecord): StartOf {
  return { kind: "settled", record, rolledBack: null };
}
