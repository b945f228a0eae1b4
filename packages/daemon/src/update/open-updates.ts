import type { Log } from "../log.ts";
import type { DurableRecord } from "../state/durable-record.ts";
import type { FileLayer } from "../state/files.ts";
import type { FolderLayer } from "./folder-layer.ts";
import type { Installed } from "./install-layout.ts";
import { type StartOf, startOf } from "./trial-rules.ts";
import { NO_UPDATES, type UpdateRecord, updateRecordIn } from "./update-record.ts";
import { VersionsFolder } from "./versions-folder.ts";

/** Where updates stand when the program starts. */
export interface UpdatesAtStart {
  readonly record: DurableRecord<UpdateRecord>;
  /** Null where the program cannot update itself: it is no installed build. */
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
  readonly log: Log;
}

/** Reads what an earlier program left, and settles what it could not. Before anything else, since a version on trial may end anywhere. */
export async function openUpdates(deps: OpenUpdatesDeps): Promise<UpdatesAtStart> {
  const { files, folders, stateDir, installed, now, log } = deps;
  const record = updateRecordIn(files, stateDir);
  const { value, damaged } = await record.load();
  if (damaged) log.error("what was remembered of updates was damaged");
  if (installed === null) return { record, versions: null, start: settled(value ?? NO_UPDATES) };
  const versions = new VersionsFolder(installed, folders);
  const turnedBack = await versions.hasTurnedBack();
  const start = startOf(value ?? NO_UPDATES, { version: installed.version, turnedBack, now });
  if (start.kind === "on-trial") {
    log.warn({ version: installed.version, before: start.trial.from }, "this version is on trial");
    return { record, versions, start };
  }
  if (start.rolledBack !== null) log.error(start.rolledBack, "a newer version was given up, and this one runs again");
  if (value !== null && (value.trial !== null || start.rolledBack !== null)) await record.save(start.record);
  // After the record, which says why.
  await versions.dropGuard();
  return { record, versions, start };
}

function settled(record: UpdateRecord): StartOf {
  return { kind: "settled", record, rolledBack: null };
}
