import { join } from "node:path";

/**
 * Where a build lies on a node: `<root>/versions/<version>/`, with `<root>/current` as a link to the one that systemd starts.
 * A program from a checkout lies elsewhere, and cannot update itself.
 */

export interface Installed {
  /** `/opt/fairlead-daemon` on machines that install.sh set up. */
  readonly root: string;
  /** Of the folder that the running program lies in. */
  readonly version: string;
}

/** @param program the file of the running program, with links resolved. @returns null where it is no installed build */
export function installedAs(program: string): Installed | null {
  const [, root, version] = /^(\/.+)\/versions\/([^/]+)\/lib\/daemon\.js$/.exec(program) ?? [];
  return root === undefined || version === undefined ? null : { root, version };
}

export const versionsFolder = (root: string): string => join(root, "versions");
export const versionFolder = (root: string, version: string): string => join(root, "versions", version);
/** What the link `current` says: relative, so that a root can be looked at from elsewhere. */
export const linkTarget = (version: string): string => `versions/${version}`;
export const currentLink = (root: string): string => join(root, "current");
export const downloadsFolder = (root: string): string => join(root, "downloads");
/** Beside a version's files: the hash of the tar that they came from. Written last, so it says too that the version is whole. */
export const HASH_FILE = ".sha256";
