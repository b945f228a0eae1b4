import { join } from "node:path";

/**
 * Layout of builds on a node: `<root>/versions/<version>/`, with `<root>/current` as a link to the version that systemd starts.
 * A program from a checkout cannot update itself.
 */

export interface Installed {
  /** `/opt/fairlead-daemon` if installed with install.sh. */
  readonly root: string;
  /** Version in the running program's path. */
  readonly version: string;
}

/** @param program real path of the running program. @returns null if it is not an installed build */
export function installedAs(program: string): Installed | null {
  const [, root, version] = /^(\/.+)\/versions\/([^/]+)\/lib\/daemon\.js$/.exec(program) ?? [];
  return root === undefined || version === undefined ? null : { root, version };
}

export const versionsFolder = (root: string): string => join(root, "versions");
export const versionFolder = (root: string, version: string): string => join(root, "versions", version);
/** Target of the link `current`; relative, so that the root can be mounted elsewhere. */
export const linkTarget = (version: string): string => `versions/${version}`;
export const currentLink = (root: string): string => join(root, "current");
export const downloadsFolder = (root: string): string => join(root, "downloads");
/** File with the hash of the version's tar. Written last, so its presence means that the version is complete. */
export const HASH_FILE = ".sha256";
