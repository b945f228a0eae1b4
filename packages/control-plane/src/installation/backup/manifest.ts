import { z } from "zod";

/** What a backup says of itself, and how its file is named. Pure. */

export const BACKUP_FORMAT = "fairlead-backup/1";
export const MANIFEST_FILE = "manifest.json";

/** What is known of a store without reading its rows. */
export const storeFactsSchema = z.object({
  store: z.enum(["sqlite", "postgres"]),
  installationId: z.string(),
  /** Of the installation at that time; a restore starts another. */
  epoch: z.string(),
  /** The schema's steps that the store has run. */
  migrations: z.array(z.string()),
  /** Which master key opens what is sealed in it; the key itself is never in a backup. */
  masterKeyId: z.string(),
});
export type StoreFacts = z.infer<typeof storeFactsSchema>;

export const manifestSchema = storeFactsSchema.extend({
  format: z.literal(BACKUP_FORMAT),
  /** RFC 3339. */
  createdAt: z.iso.datetime(),
  /** The program that made it. */
  program: z.object({ version: z.string(), commit: z.string() }),
  /** The store's own file. */
  file: z.object({
    name: z.enum(["store.db", "store.dump"]),
    bytes: z.number().int().min(0),
    sha256: z.string().regex(/^[0-9a-f]{64}$/),
  }),
  /** Files that a server needs besides, and that are in no backup: settings, master key, credentials, certificates. */
  alsoKeep: z.array(z.string()),
});
export type Manifest = z.infer<typeof manifestSchema>;

/** The last letters of an id, which are random, tell installations apart in one folder. */
const ID_LETTERS = 8;

/** `fairlead-5m2c8d1x-20260302T101112Z.tar.gz`: names sort by time. @param createdAt RFC 3339 */
export function backupName(installationId: string, createdAt: string): string {
  return `${prefixOf(installationId)}${createdAt.replaceAll(/[-:]|\.\d+/g, "")}.tar.gz`;
}

/** The installation's own backups of a folder that are more than the newest `keep`. */
export function outdatedBackups(names: readonly string[], installationId: string, keep: number): readonly string[] {
  const form = /^\d{8}T\d{6}Z\.tar\.gz$/;
  const prefix = prefixOf(installationId);
  const own = names.filter((name) => name.startsWith(prefix) && form.test(name.slice(prefix.length)));
  return own.toSorted().slice(0, Math.max(0, own.length - keep));
}

function prefixOf(installationId: string): string {
  return `fairlead-${installationId.slice(-ID_LETTERS)}-`;
}
