import { join } from "node:path";
import type { FolderLayer } from "./folder-layer.ts";
import {
  currentLink,
  downloadsFolder,
  HASH_FILE,
  type Installed,
  linkTarget,
  versionFolder,
  versionsFolder,
} from "./install-layout.ts";
import { TRIAL_STARTS } from "./trial-rules.ts";

/**
 * Rolls back a version that does not even start: a script that systemd runs before each start
 * (`ExecStartPre`) during a trial. The old version writes it, because the new one may be broken.
 */

const guardFolder = (root: string): string => join(root, "trial");
const GUARD_SCRIPT = "guard.sh";
/** A link to the old version. Renaming it to `current` rolls back and records that, atomically and even on a full disk. */
const GUARD_BACK = "back";
/** Each start removes one of these files. */
const startFiles: readonly string[] = Array.from({ length: TRIAL_STARTS }, (_, n) => `start-${n + 1}`);

/** Versions contain no shell metacharacters (`buildVersionSchema`). */
function guardScript({ from, to }: { readonly from: string; readonly to: string }): string {
  return `#!/bin/sh
# Version ${to} of the daemon is on trial. Each start takes one file start-* away; when none is left, version ${from} takes over again.
trial=\${0%/*}
root=\${trial%/*}
[ "$(readlink "$root/current")" = "${linkTarget(to)}" ] || exit 0
for start in "$trial"/start-*; do
  [ -e "$start" ] && rm -f "$start" && exit 0
done
mv -T "$trial/${GUARD_BACK}" "$root/current" || exit 0
echo "fairlead-daemon ${to} failed ${TRIAL_STARTS} times during its trial; starting version ${from} again" >&2
`;
}

const HALF = ".half";

/** Manages installed versions and which one starts next. Methods can be interrupted anywhere and repeated. */
export class VersionsFolder {
  readonly installed: Installed;
  readonly #folders: FolderLayer;

  constructor(installed: Installed, folders: FolderLayer) {
    this.installed = installed;
    this.#folders = folders;
  }

  /** Download path, named by hash, so that only the same build is resumed. */
  async downloadFile(sha256: string): Promise<string> {
    const folder = downloadsFolder(this.installed.root);
    await this.#folders.makeFolder(folder);
    return join(folder, `${sha256}.tar.gz`);
  }

  async dropDownload(sha256: string): Promise<void> {
    await this.#folders.remove(join(downloadsFolder(this.installed.root), `${sha256}.tar.gz`));
  }

  /** Whether this version is installed from exactly this tar. */
  async holds(version: string, sha256: string): Promise<boolean> {
    const hash = await this.#folders.read(join(versionFolder(this.installed.root, version), HASH_FILE));
    return hash?.trim() === sha256;
  }

  /** Installs a version atomically. */
  async place(version: string, { archive, sha256 }: { archive: string; sha256: string }): Promise<void> {
    const target = versionFolder(this.installed.root, version);
    const half = `${target}${HALF}`;
    await this.#folders.remove(half);
    await this.#folders.makeFolder(half);
    await this.#folders.unpack(archive, half);
    await this.#folders.write(join(half, HASH_FILE), `${sha256}\n`);
    await this.#folders.flush(half);
    // From another tar, or incomplete.
    await this.#folders.remove(target);
    await this.#folders.rename(half, target);
    await this.#folders.flush(versionsFolder(this.installed.root));
  }

  program(version: string): string {
    return join(versionFolder(this.installed.root, version), "bin/fairlead-daemon");
  }

  /** Creates the guard (`trial-guard.ts`), which has no effect until `current` points to `to`. */
  async guard(to: string): Promise<void> {
    const { root, version: from } = this.installed;
    const folder = guardFolder(root);
    const half = `${folder}${HALF}`;
    await this.#folders.remove(half);
    await this.#folders.makeFolder(half);
    await this.#folders.write(join(half, GUARD_SCRIPT), guardScript({ from, to }));
    await this.#folders.link(linkTarget(from), join(half, GUARD_BACK));
    for (const file of startFiles) await this.#folders.write(join(half, file), "");
    await this.#folders.remove(folder);
    await this.#folders.rename(half, folder);
    await this.#folders.flush(root);
  }

  /** Atomically makes this version the one to start next. */
  async switchTo(version: string): Promise<void> {
    const { root } = this.installed;
    const next = `${currentLink(root)}.new`;
    await this.#folders.link(linkTarget(version), next);
    await this.#folders.rename(next, currentLink(root));
    await this.#folders.flush(root);
  }

  /** Rolls back like the guard, or with a new link if there is none. */
  async turnBack(from: string): Promise<void> {
    const { root } = this.installed;
    const back = join(guardFolder(root), GUARD_BACK);
    if ((await this.#folders.readLink(back)) === null) {
      await this.switchTo(from);
      return;
    }
    await this.#folders.rename(back, currentLink(root));
    await this.#folders.flush(root);
  }

  /** Whether the guard rolled back. */
  async hasTurnedBack(): Promise<boolean> {
    const names = await this.#folders.list(guardFolder(this.installed.root));
    return names.includes(GUARD_SCRIPT) && !names.includes(GUARD_BACK);
  }

  async dropGuard(): Promise<void> {
    const folder = guardFolder(this.installed.root);
    if ((await this.#folders.list(folder)).length === 0) return;
    // Renamed first: a partially removed guard would look like a rollback.
    await this.#folders.remove(`${folder}${HALF}`);
    await this.#folders.rename(folder, `${folder}${HALF}`);
    await this.#folders.remove(`${folder}${HALF}`);
  }

  /** Removes all but the given versions, and all downloads and partial folders. */
  async tidy(others: readonly string[]): Promise<void> {
    const { root, version } = this.installed;
    // `current` may have been changed by hand in the meantime; keep that.
    const current = (await this.#folders.readLink(currentLink(root)))?.split("/").at(-1);
    const kept = new Set([version, current, ...others]);
    for (const name of await this.#folders.list(versionsFolder(root))) {
      if (!kept.has(name)) await this.#folders.remove(join(versionsFolder(root), name));
    }
    await this.#folders.remove(downloadsFolder(root));
  }
}
