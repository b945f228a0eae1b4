import { execFile } from "node:child_process";
import { mkdir, readdir, readFile, readlink, rename, rm, symlink, writeFile } from "node:fs/promises";
import { promisify } from "node:util";
import { diskFiles } from "../state/files.ts";
import { checkArchive } from "./check-archive.ts";

const run = promisify(execFile);

/** File system effects of an update, one each, so that tests can stop the program between them. */
export interface FolderLayer {
  makeFolder(path: string): Promise<void>;
  write(path: string, text: string): Promise<void>;
  /** Creates a link to `target`, replacing an existing entry. */
  link(target: string, path: string): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  remove(path: string): Promise<void>;
  unpack(archive: string, folder: string): Promise<void>;
  /** Flushes the file system of this path. */
  flush(path: string): Promise<void>;
  read(path: string): Promise<string | null>;
  readLink(path: string): Promise<string | null>;
  /** Empty if the folder does not exist. */
  list(path: string): Promise<readonly string[]>;
}

export const diskFolders: FolderLayer = {
  makeFolder: async (path) => {
    await mkdir(path, { recursive: true, mode: 0o755 });
  },
  write: (path, text) => writeFile(path, text),
  link: async (target, path) => {
    await rm(path, { force: true });
    await symlink(target, path);
  },
  rename,
  remove: (path) => rm(path, { recursive: true, force: true }),
  // Do not restore the archive's owners.
  unpack: async (archive, folder) => {
    await checkArchive(archive);
    await run("tar", ["-xzf", archive, "-C", folder, "--no-same-owner"]);
  },
  flush: async (path) => {
    // One call instead of one per file; includes directory entries.
    await run("sync", ["-f", path]);
    await diskFiles.syncFolder(path);
  },
  read: (path) => readFile(path, "utf8").catch(nothing),
  readLink: (path) => readlink(path).catch(nothing),
  list: (path) => readdir(path).catch(() => []),
};

/** A missing and an unreadable file are both recreated. */
function nothing(): null {
  return null;
}
