import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { CliError } from "../cli-error.ts";
import { credentialsSchema, type LoginCredentials, NO_CREDENTIALS } from "./credentials.ts";
import { type LockPorts, withFileLock } from "./file-lock.ts";

/** `credentials.json` in the user's config folder: mode 0600, replaced atomically. */
export class CredentialsFile {
  readonly path: string;
  readonly #dir: string;
  readonly #ports: LockPorts;

  /** @param dir the folder, created on the first write. */
  constructor(dir: string, ports: LockPorts) {
    this.#dir = dir;
    this.#ports = ports;
    this.path = join(dir, "credentials.json");
  }

  /** @throws CliError if other users can read the file, or if it is damaged. */
  read(): LoginCredentials {
    const text = this.#readText();
    if (text === null) return NO_CREDENTIALS;
    try {
      return credentialsSchema.parse(JSON.parse(text));
    } catch (cause) {
      const advice = "Delete it and run `fairlead login`, or use the version of fairlead that wrote it.";
      throw new CliError(`${this.path} is damaged or was written by a newer version. ${advice}`, { cause });
    }
  }

  /** Changes the file under the lock. */
  async update(change: (now: LoginCredentials) => LoginCredentials): Promise<void> {
    await this.exclusively(async (now, write) => write(change(now)));
  }

  /** Holds the lock while `work` runs, which may call `write` at any time. */
  async exclusively<T>(
    work: (now: LoginCredentials, write: (next: LoginCredentials) => void) => Promise<T>,
  ): Promise<T> {
    mkdirSync(this.#dir, { recursive: true, mode: 0o700 });
    return withFileLock(`${this.path}.lock`, this.#ports, () => work(this.read(), (next) => this.#write(next)));
  }

  #readText(): string | null {
    const found = statSync(this.path, { throwIfNoEntry: false });
    if (!found) return null;
    if ((found.mode & 0o077) !== 0) {
      const mode = (found.mode & 0o777).toString(8).padStart(4, "0");
      throw new CliError(
        `${this.path} contains credentials, but other users can read or change it (mode ${mode}). Run: chmod 600 '${this.path}'\n` +
          "If other people use this machine, sign in again: fairlead logout && fairlead login",
      );
    }
    return readFileSync(this.path, "utf8");
  }

  #write(next: LoginCredentials): void {
    const temporary = `${this.path}.new`;
    rmSync(temporary, { force: true });
    const file = openSync(temporary, "wx", 0o600);
    try {
      writeSync(file, `${JSON.stringify(next, null, 2)}\n`);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(temporary, this.path);
  }
}
