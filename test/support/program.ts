import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, fstatSync, openSync, readFileSync } from "node:fs";

/** A user of this system, by number; only root may run programs as another. */
export interface RunAs {
  readonly uid?: number;
  readonly gid?: number;
}

/** A program in a process of its own, with all that it prints in a file. */
export class Program {
  readonly #child: ChildProcess;
  readonly #ended: Promise<void>;
  readonly #logFile: string;
  /** Where this run's own lines begin. */
  readonly #logStart: number;

  /** @param command the program and its arguments. @param logFile is appended to. @param how as whom it runs, and with what besides our environment. */
  constructor(
    [program = "", ...args]: readonly string[],
    logFile: string,
    { env, ...user }: RunAs & { readonly env?: NodeJS.ProcessEnv } = {},
  ) {
    const log = openSync(logFile, "a", 0o600);
    this.#logFile = logFile;
    this.#logStart = fstatSync(log).size;
    const all = { ...withoutOurSettings(), ...env };
    this.#child = spawn(program, args, { stdio: ["ignore", log, log], env: all, ...user });
    closeSync(log);
    this.#ended = new Promise((resolve) => this.#child.once("exit", () => resolve()).once("error", () => resolve()));
  }

  /** @throws Error where it was never started. */
  get pid(): number {
    if (this.#child.pid === undefined) throw new Error("the program was not started");
    return this.#child.pid;
  }

  get running(): boolean {
    return this.#child.pid !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  get exitCode(): number | null {
    return this.#child.exitCode;
  }

  /** What ended it; null for a process that ended by itself. */
  get signal(): NodeJS.Signals | null {
    return this.#child.signalCode;
  }

  /** Resolves when the process is gone. */
  get ended(): Promise<void> {
    return this.#ended;
  }

  /** Ends it without a word of warning, as a crash does. */
  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#ended;
  }

  /** Asks it to end. */
  signalStop(): void {
    this.#child.kill("SIGTERM");
  }

  /** Asks it to end, and waits for that. */
  async stop(): Promise<void> {
    this.signalStop();
    await this.#ended;
  }

  /** What it has printed. */
  get log(): string {
    return readFileSync(this.#logFile, "utf8").slice(this.#logStart);
  }

  /** The end of that, for a failure that it explains. */
  lastLines(): string {
    return this.log.trimEnd().split("\n").slice(-15).join("\n");
  }
}

/** Settings in the shell of who runs the tests must not become the program's. */
function withoutOurSettings(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("FAIRLEAD_")));
}
