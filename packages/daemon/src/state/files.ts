import { mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { dirname, resolve } from "node:path";

/** File operations for durable state, one system effect each, so that tests can simulate a power cut between them. */
export interface FileLayer {
  /** @returns the text, or null if the file does not exist. */
  read(path: string): Promise<string | null>;
  /** Writes a file with mode 0600 and flushes it to disk. */
  write(path: string, text: string): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  /** Flushes a folder, so that a rename inside it survives a power cut. */
  syncFolder(path: string): Promise<void>;
  /** Creates a folder with mode 0700, including parents, and flushes the parents. */
  makeFolder(path: string): Promise<void>;
  /** Removes a file if it exists. */
  remove(path: string): Promise<void>;
}

export const diskFiles: FileLayer = {
  read: async (path) => {
    try {
      return await readFile(path, "utf8");
    } catch (error) {
      if (isMissing(error)) return null;
      throw error;
    }
  },
  write: async (path, text) => {
    // A file left by a crash may have another mode.
    await rm(path, { force: true });
    const file = await open(path, "wx", 0o600);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
  },
  rename,
  syncFolder: async (path) => {
    const folder = await open(path, "r");
    try {
      await folder.sync();
    } finally {
      await folder.close();
    }
  },
  makeFolder: async (path) => {
    const topmost = await mkdir(path, { recursive: true, mode: 0o700 });
    if (topmost === undefined) return;
    // A new folder's entry must be flushed too.
    for (let made = resolve(path); ; made = dirname(made)) {
      await diskFiles.syncFolder(dirname(made));
      if (made === resolve(topmost) || made === dirname(made)) return;
    }
  },
  remove: (path) => rm(path, { force: true }),
};

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}

/** Replaces a file atomically, even across power cuts (amazon-ecs-agent#1301: an emptied state file lost the node). */
export async function saveAtomically(files: FileLayer, path: string, text: string): Promise<void> {
  const temporary = `${path}.new`;
  await files.write(temporary, text);
  await files.rename(temporary, path);
  await files.syncFolder(dirname(path));
}
