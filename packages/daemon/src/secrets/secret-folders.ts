import { chmod, chown, mkdir, open, readdir, readFile, rename, rm, stat, statfs } from "node:fs/promises";
import { join } from "node:path";

/** Magic numbers of in-memory file systems (statfs(2)): tmpfs and ramfs. */
const IN_MEMORY = new Set([0x01021994, 0x858458f6]);

const FOLDER_MODE = 0o700;
const FILE_MODE = 0o400;

export interface FolderContent {
  /** Owner: the numeric user ID of the container. */
  readonly owner: number;
  readonly files: ReadonlyMap<string, Uint8Array>;
}

/**
 * Decrypted secrets on a tmpfs: one folder per container, one file per secret. A container mounts its folder, so it sees a
 * file that was replaced by rename. The folder must not be replaced while its container exists.
 */
export class SecretFolders {
  /** Parent folder, used for nothing else and created on demand. */
  readonly root: string;

  constructor(root: string) {
    this.root = root;
  }

  pathOf(container: string): string {
    return join(this.root, container);
  }

  /** Creates the folder if missing. @returns its path */
  async make(container: string): Promise<string> {
    const path = this.pathOf(container);
    await mkdir(path, { recursive: true, mode: FOLDER_MODE });
    return path;
  }

  /** Makes the folder contain exactly these files, replaced atomically. Unchanged files are not touched. */
  async fill(container: string, { owner, files }: FolderContent): Promise<void> {
    const folder = await this.make(container);
    const { uid, mode } = await stat(folder);
    // chmod before chown: changing files of other users requires another capability.
    if ((mode & 0o777) !== FOLDER_MODE) await chmod(folder, FOLDER_MODE);
    if (uid !== owner) await chown(folder, owner, -1);
    for (const [name, value] of files) {
      const path = join(folder, name);
      if (await holds(path, value, owner)) continue;
      // Secret names never start with a dot.
      const temporary = join(folder, `.${name}`);
      await rm(temporary, { force: true });
      await write(temporary, value, owner);
      await rename(temporary, path);
    }
    for (const name of await readdir(folder)) {
      if (!files.has(name)) await rm(join(folder, name), { force: true, recursive: true });
    }
  }

  /** Empties a container's folder but keeps the folder for its mount. */
  async empty(container: string): Promise<void> {
    const folder = this.pathOf(container);
    for (const name of await entriesOf(folder)) await rm(join(folder, name), { force: true, recursive: true });
  }

  /** The contents of a file, or null. */
  async read(container: string, file: string): Promise<Uint8Array | null> {
    try {
      return await readFile(join(this.pathOf(container), file));
    } catch (error) {
      if (isMissing(error)) return null;
      throw error;
    }
  }

  async remove(container: string): Promise<void> {
    await rm(this.pathOf(container), { force: true, recursive: true });
  }

  async list(): Promise<string[]> {
    return (await entriesOf(this.root)).filter(isContainer);
  }

  /** Whether the folder is in memory (apart from swap). True if there is no folder. */
  async inMemory(): Promise<boolean> {
    try {
      return IN_MEMORY.has((await statfs(this.root)).type);
    } catch (error) {
      if (isMissing(error)) return true;
      throw error;
    }
  }
}

/** Container names never start with a dot; other entries do. */
export function isContainer(name: string): boolean {
  return !name.startsWith(".");
}

/** @returns an empty list if the folder is missing. */
export async function entriesOf(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}

async function holds(path: string, value: Uint8Array, owner: number): Promise<boolean> {
  try {
    const { uid, mode } = await stat(path);
    return uid === owner && (mode & 0o777) === FILE_MODE && (await readFile(path)).equals(value);
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
}

async function write(path: string, value: Uint8Array, owner: number): Promise<void> {
  const file = await open(path, "wx", FILE_MODE);
  try {
    await file.chmod(FILE_MODE);
    await file.writeFile(value);
    if ((await file.stat()).uid !== owner) await file.chown(owner, -1);
  } finally {
    await file.close();
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR");
}
