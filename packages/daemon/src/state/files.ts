import { mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { dirname, resolve } from "node:path";

/** The few file operations that durable state needs, one system effect each, so that tests can cut the power between any two. */
export interface FileLayer {
  /** @returns the text, or null where there is no such file. */
  read(path: string): Promise<string | null>;
  /** Writes a whole file, readable by its owner only, and flushes it to the disk. */
  write(path: string, text: string): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  /** Flushes a folder, so that a rename inside it survives a power cut. */
  syncFolder(path: string): Promise<void>;
  /** Makes a folder for its owner only, parents included, and flushes those that it was missing from. */
  makeFolder(path: string): Promise<void>;
  /** Removes a file; one that is missing is fine. */
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
    // A left-over of an earlier crash may carry another mode.
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
    // What is saved in a new folder is only as safe as the folder's own name.
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

/** Replaces a file whole or not at all, power cuts included (amazon-ecs-agent#1301: an emptied state file lost the node). */
export async function saveAtomically(files: FileLayer, path: string, text: string): Promise<void> {
  const temporary = `${path}.new`;
  await files.write(temporary, text);
  await files.rename(temporary, path);
  await files.syncFolder(dirname(path));
}
