import { existsSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { StartError } from "../process/start-error.ts";

/** A PostgreSQL database cannot be swapped atomically like a file. During a restore, a mark in the data folder keeps servers from starting. */

/** @param aside the folder with the previous data. */
export async function beginRestore(dataDir: string, aside: string): Promise<void> {
  await writeFile(markFile(dataDir), `${aside}\n`, { mode: 0o600, flush: true });
}

export async function endRestore(dataDir: string): Promise<void> {
  await rm(markFile(dataDir), { force: true });
}

/** @throws StartError after an interrupted restore */
export function refuseHalfRestored(dataDir: string): void {
  const file = markFile(dataDir);
  if (!existsSync(file)) return;
  throw new StartError(
    `A restore was interrupted, so the store may be incomplete. Run \`fairlead restore\` again to finish it. ${file} contains the name of the ` +
      "folder with the previous data.",
  );
}

function markFile(dataDir: string): string {
  return join(dataDir, "restore.pending");
}
