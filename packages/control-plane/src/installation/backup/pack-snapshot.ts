import { mkdir, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { BUILD } from "@fairlead/protocol/values/build-info";
import { type OnProgress, packBackup, sha256OfFile } from "./backup-file.ts";
import { BACKUP_FORMAT, backupName, type Manifest, outdatedBackups } from "./manifest.ts";
import type { StoreSnapshot } from "./snapshot.ts";

export interface PackSnapshot {
  readonly snapshot: StoreSnapshot;
  /** RFC 3339. */
  readonly createdAt: string;
  readonly alsoKeep: readonly string[];
  /** A folder, in which the backup gets a generated name, or the file. */
  readonly target: { readonly folder: string } | { readonly file: string };
  readonly onProgress: OnProgress;
}

export interface PackedBackup {
  readonly file: string;
  readonly bytes: number;
  readonly manifest: Manifest;
}

/** Packs a snapshot into one file and removes the snapshot. @throws StartError */
export async function packSnapshot({ snapshot, target, ...options }: PackSnapshot): Promise<PackedBackup> {
  const { facts, copy, folder } = snapshot;
  const { createdAt, alsoKeep, onProgress } = options;
  try {
    const { size: bytes } = await stat(copy.file);
    const manifest: Manifest = {
      format: BACKUP_FORMAT,
      createdAt,
      program: { version: BUILD.version, commit: BUILD.commit },
      ...facts,
      file: { name: copy.name, bytes, sha256: await sha256OfFile(copy.file) },
      alsoKeep: [...alsoKeep],
    };
    if ("folder" in target) await mkdir(target.folder, { recursive: true, mode: 0o700 });
    const file = "file" in target ? target.file : join(target.folder, backupName(facts.installationId, createdAt));
    await packBackup({ manifest, storeFile: copy.file, target: file, onProgress });
    return { file, bytes: (await stat(file)).size, manifest };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Removes all but the newest of the installation's backups in a folder. @returns the names removed. */
export async function removeOutdated(folder: string, installationId: string, keep: number): Promise<readonly string[]> {
  const outdated = outdatedBackups(await readdir(folder), installationId, keep);
  for (const name of outdated) await rm(join(folder, name), { force: true });
  return outdated;
}
