import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { waitFor } from "./wait-for.ts";

const PROGRAM = new URL("../../packages/cli/bin/fairlead.js", import.meta.url).pathname;
const NOTICE_MS = 20_000;

/** `fairlead` as somebody runs it on a machine of their own: a process for every command, one folder of settings. */
export class CommandLine {
  readonly #home = mkdtempSync(join(tmpdir(), "fairlead-home-"));
  readonly #env: Readonly<Record<string, string>>;

  /** @param env beside what every shell has. */
  constructor(env: Readonly<Record<string, string>> = {}) {
    this.#env = env;
  }

  /** Runs a command to its end. */
  run(...argv: readonly string[]): Promise<Finished> {
    return this.start(...argv).finished;
  }

  start(...argv: readonly string[]): RunningCommand {
    const env = { PATH: process.env["PATH"], HOME: this.#home, XDG_CONFIG_HOME: this.#home, ...this.#env };
    const child = spawn(process.execPath, [PROGRAM, ...argv], { env, stdio: ["ignore", "pipe", "pipe"] });
    let out = "";
    let notes = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => (out += text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => (notes += text));
    const finished = new Promise<Finished>((resolve, reject) => {
      child.once("error", reject).once("close", (code) => resolve({ code, out, notes }));
    });
    return {
      finished,
      noticed: (form) => waitFor(`${form.source} in the notes`, NOTICE_MS, async () => form.exec(notes)?.[1]),
    };
  }

  /** What `credentials.json` holds, as it is written there. */
  get credentials(): string {
    return readFileSync(this.#credentialsFile, "utf8");
  }

  set credentials(text: string) {
    writeFileSync(this.#credentialsFile, text);
  }

  get #credentialsFile(): string {
    return join(this.#home, "fairlead", "credentials.json");
  }

  remove(): void {
    rmSync(this.#home, { recursive: true, force: true });
  }
}

export interface Finished {
  readonly code: number | null;
  readonly out: string;
  readonly notes: string;
}

export interface RunningCommand {
  readonly finished: Promise<Finished>;
  /** The first group of this form, as soon as it stands in the notes. */
  noticed(form: RegExp): Promise<string>;
}
