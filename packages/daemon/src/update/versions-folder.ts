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
import { GUARD_BACK, GUARD_SCRIPT, guardFolder, guardScript, startFiles } from "./trial-guard.ts";

const HALF = ".half";

/** The versions on this machine, and which of them starts next. Every method may be cut short anywhere, and be called again. */
export class VersionsFolder {
  readonly installed: Installed;
  readonly #folders: FolderLayer;

  constructor(installed: Installed, folders: FolderLayer) {
    this.installed = installed;
    this.#folders = folders;
  }

  /** Where a download goes; named by its hash, so that nothing is ever gone on with that another build began. */
  async downloadFile(sha256: string): Promise<string> {
    const folder = downloadsFolder(this.installed.root);
    await this.#folders.makeFolder(folder);
    return join(folder, `${sha256}.tar.gz`);
  }

  async dropDownload(sha256: string): Promise<void> {
    await this.#folders.remove(join(downloadsFolder(this.installed.root), `${sha256}.tar.gz`));
  }

  /** Whether this version is there, made of just this tar. */
  async holds(version: string, sha256: string): Promise<boolean> {
    const hash = await this.#folders.read(join(versionFolder(this.installed.root, version), HASH_FILE));
    return hash?.trim() === sha256;
  }

  /** Puts a version there, whole or not at all. */
  async place(version: string, { archive, sha256 }: { archive: string; sha256: string }): Promise<void> {
    const target = versionFolder(this.installed.root, version);
    const half = `${target}${HALF}`;
    await this.#folders.remove(half);
    await this.#folders.makeFolder(half);
    await this.#folders.unpack(archive, half);
    await this.#folders.write(join(half, HASH_FILE), `${sha256}\n`);
    await this.#folders.flush(half);
    // Of another tar, or not whole.
    await this.#folders.remove(target);
    await this.#folders.rename(half, target);
    await this.#folders.flush(versionsFolder(this.installed.root));
  }

  program(version: string): string {
    return join(versionFolder(this.installed.root, version), "bin/fairlead-daemon");
  }

  /** Makes ready what turns back by itself (`trial-guard.ts`). Does nothing while `current` says another version than `to`. */
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

  /** From the next start on this version runs. One step: there is never no version. */
  async switchTo(version: string): Promise<void> {
    const { root } = this.installed;
    const next = `${currentLink(root)}.new`;
    await this.#folders.link(linkTarget(version), next);
    await this.#folders.rename(next, currentLink(root));
    await this.#folders.flush(root);
  }

  /** Back to the version before, as the guard does it; without one, by a new link. */
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

  /** Whether the way back has been gone. */
  async hasTurnedBack(): Promise<boolean> {
    const names = await this.#folders.list(guardFolder(this.installed.root));
    return names.includes(GUARD_SCRIPT) && !names.includes(GUARD_BACK);
  }

  async dropGuard(): Promise<void> {
    const folder = guardFolder(this.installed.root);
    if ((await this.#folders.list(folder)).length === 0) return;
    // Moved away first: half a guard must not count as one that has turned back.
    await this.#folders.remove(`${folder}${HALF}`);
    await this.#folders.rename(folder, `${folder}${HALF}`);
    await this.#folders.remove(`${folder}${HALF}`);
  }

  /** Only this version stays, and those named; downloads and halves go too. */
  async tidy(others: readonly string[]): Promise<void> {
    const { root, version } = this.installed;
    // Whoever set `current` meanwhile, by hand perhaps, wants to start that.
    const current = (await this.#folders.readLink(currentLink(root)))?.split("/").at(-1);
    const kept = new Set([version, current, ...others]);
    for (const name of await this.#folders.list(versionsFolder(root))) {
      if (!kept.has(name)) await this.#folders.remove(join(versionsFolder(root), name));
    }
    await this.#folders.remove(downloadsFolder(root));
  }
}
