import { chmod, chown, mkdir, open, readdir, readFile, rename, rm, stat, statfs } from "node:fs/promises";
import { join } from "node:path";

/** Magic numbers of file systems that live in memory alone (statfs(2)): tmpfs and ramfs. */
const IN_MEMORY = new Set([0x01021994, 0x858458f6]);

const FOLDER_MODE = 0o700;
const FILE_MODE = 0o400;

export interface FolderContent {
  /** Who may read it: the numeric user that the container runs as. */
  readonly owner: number;
  readonly files: ReadonlyMap<string, Uint8Array>;
}

/**
 * Opened secrets on a tmpfs: one folder per container, one file each. A container mounts its folder, never a file, so it sees a
 * file that was replaced by rename; so a folder stays the same one as long as its container is there.
 */
export class SecretFolders {
  /** Holds these folders alone; it is made when the first one is. */
  readonly root: string;

  constructor(root: string) {
    this.root = root;
  }

  pathOf(container: string): string {
    return join(this.root, container);
  }

  /** An empty folder where there is none. @returns its path */
  async make(container: string): Promise<string> {
    const path = this.pathOf(container);
    await mkdir(path, { recursive: true, mode: FOLDER_MODE });
    return path;
  }

  /** Makes the folder hold exactly this, each file replaced whole. What is right already is not touched. */
  async fill(container: string, { owner, files }: FolderContent): Promise<void> {
    const folder = await this.make(container);
    const { uid, mode } = await stat(folder);
    // In this order: what is somebody else's already cannot be changed without one more capability.
    if ((mode & 0o777) !== FOLDER_MODE) await chmod(folder, FOLDER_MODE);
    if (uid !== owner) await chown(folder, owner, -1);
    for (const [name, value] of files) {
      const path = join(folder, name);
      if (await holds(path, value, owner)) continue;
      // No secret's name begins with a dot.
      const temporary = join(folder, `.${name}`);
      await rm(temporary, { force: true });
      await write(temporary, value, owner);
      await rename(temporary, path);
    }
    for (const name of await readdir(folder)) {
      if (!files.has(name)) await rm(join(folder, name), { force: true, recursive: true });
    }
  }

  /** The bytes of a file that is there, or null. */
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
    try {
      return await readdir(this.root);
    } catch (error) {
      if (isMissing(error)) return [];
      throw error;
    }
  }

  /** Whether what rests here never reaches a disk (swap aside). True while nothing rests here. */
  async inMemory(): Promise<boolean> {
    try {
      return IN_MEMORY.has((await statfs(this.root)).type);
    } catch (error) {
      if (isMissing(error)) return true;
      throw error;
    }
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
