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
import { type Credentials, credentialsSchema, NO_CREDENTIALS } from "./credentials.ts";
import { type LockPorts, withFileLock } from "./file-lock.ts";

/** `credentials.json` in the folder of the user's settings: for its owner only, replaced whole or not at all. */
export class CredentialsFile {
  readonly path: string;
  readonly #dir: string;
  readonly #ports: LockPorts;

  /** @param dir the folder; made when something is first kept. */
  constructor(dir: string, ports: LockPorts) {
    this.#dir = dir;
    this.#ports = ports;
    this.path = join(dir, "credentials.json");
  }

  /** @throws CliError when others could read the file, or when it is damaged. */
  read(): Credentials {
    const text = this.#readText();
    if (text === null) return NO_CREDENTIALS;
    try {
      return credentialsSchema.parse(JSON.parse(text));
    } catch (cause) {
      const advice = "Delete it and run `fairlead login`, or use the version of fairlead that wrote it.";
      throw new CliError(`${this.path} is damaged, or of a newer version. ${advice}`, { cause });
    }
  }

  /** Changes the file while no other command does. */
  async update(change: (now: Credentials) => Credentials): Promise<void> {
    await this.exclusively(async (now, write) => write(change(now)));
  }

  /** Lets no other command change the file until the work is done. `write` may be called at any time in it. */
  async exclusively<T>(work: (now: Credentials, write: (next: Credentials) => void) => Promise<T>): Promise<T> {
    mkdirSync(this.#dir, { recursive: true, mode: 0o700 });
    return withFileLock(`${this.path}.lock`, this.#ports, () => work(this.read(), (next) => this.#write(next)));
  }

  #readText(): string | null {
    const found = statSync(this.path, { throwIfNoEntry: false });
    if (!found) return null;
    if ((found.mode & 0o077) !== 0) {
      const mode = (found.mode & 0o777).toString(8).padStart(4, "0");
      throw new CliError(
        `${this.path} holds credentials, and others may read or change it (mode ${mode}). Run: chmod 600 '${this.path}'\n` +
          "If others use this machine, sign out and in again: fairlead logout && fairlead login",
      );
    }
    return readFileSync(this.path, "utf8");
  }

  #write(next: Credentials): void {
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
