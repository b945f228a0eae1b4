import { execFile } from "node:child_process";
import { mkdir, readdir, readFile, readlink, rename, rm, symlink, writeFile } from "node:fs/promises";
import { promisify } from "node:util";
import { diskFiles } from "../state/files.ts";

const run = promisify(execFile);

/** What an update does to folders, one effect each, so that tests can end the program between any two. */
export interface FolderLayer {
  makeFolder(path: string): Promise<void>;
  write(path: string, text: string): Promise<void>;
  /** A link that says `target`; what stood at its place is gone. */
  link(target: string, path: string): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  remove(path: string): Promise<void>;
  unpack(archive: string, folder: string): Promise<void>;
  /** Everything on the file system of this path is on the disk. */
  flush(path: string): Promise<void>;
  read(path: string): Promise<string | null>;
  readLink(path: string): Promise<string | null>;
  /** None where there is no such folder. */
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
  // Its own owner: the tar's may be anybody here.
  unpack: async (archive, folder) => {
    await run("tar", ["-xzf", archive, "-C", folder, "--no-same-owner"]);
  },
  flush: async (path) => {
    // Files by themselves may be many; a folder's names are flushed with it.
    await run("sync", ["-f", path]);
    await diskFiles.syncFolder(path);
  },
  read: (path) => readFile(path, "utf8").catch(nothing),
  readLink: (path) => readlink(path).catch(nothing),
  list: (path) => readdir(path).catch(() => []),
};

/** Missing and unreadable are the same to an update: it is made anew. */
function nothing(): null {
  return null;
}
