import { existsSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { StartError } from "../start-error.ts";

/** A PostgreSQL cannot be swapped as one file can: while it is refilled, a mark in the data folder keeps servers from starting on it. */

/** @param aside the folder that holds what was there before. */
export async function beginRestore(dataDir: string, aside: string): Promise<void> {
  await writeFile(markFile(dataDir), `${aside}\n`, { mode: 0o600, flush: true });
}

export async function endRestore(dataDir: string): Promise<void> {
  await rm(markFile(dataDir), { force: true });
}

/** @throws StartError after a restore that was cut off */
export function refuseHalfRestored(dataDir: string): void {
  const file = markFile(dataDir);
  if (!existsSync(file)) return;
  throw new StartError(
    `A restore was cut off, so the store may be half restored. Run \`fairlead restore\` again to its end; ${file} names the folder ` +
      "that holds what was there before.",
  );
}

function markFile(dataDir: string): string {
  return join(dataDir, "restore.pending");
}
