import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { processTree } from "./machine.ts";

export interface Launch {
  /** Also the name of its log file. */
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  /** Runs on this core alone, its threads too, where the bench pins. */
  readonly core: 0 | 1;
}

export interface Started {
  readonly pid: number;
  /** Waits for this text in what it prints. @returns the first group. @throws where it ends first or time is up. */
  printed(pattern: RegExp): Promise<string>;
  /** @throws with its last words if it has ended. */
  mustRun(): void;
  /** The end of its log. */
  lastWords(): string;
  stop(): Promise<void>;
}

const START_MS = 30_000;
const STOP_MS = 8000;
const POLL_MS = 20;

/** The bench's child processes. Each is ended by its own id, whatever happens. */
export class Processes {
  readonly #children = new Set<ChildProcess>();
  readonly #folder: string;
  readonly #pinned: boolean;

  /** @param folder for their logs. */
  constructor(folder: string, pinned: boolean) {
    this.#folder = folder;
    this.#pinned = pinned;
  }

  launch({ name, command, args, core }: Launch): Started {
    const log = join(this.#folder, `${name}.log`);
    const [program = command, ...rest] = this.onCore(core, [command, ...args]);
    const output = openSync(log, "w");
    const child = spawn(program, rest, { stdio: ["ignore", output, output] });
    closeSync(output);
    child.on("error", () => this.#children.delete(child));
    child.on("exit", () => this.#children.delete(child));
    if (child.pid === undefined) throw new Error(`${program} cannot be started; is it installed?`);
    this.#children.add(child);
    const lastWords = (): string => readFileSync(log, "utf8").trim().split("\n").slice(-5).join("\n");
    const mustRun = (): void => {
      if (!this.#children.has(child)) throw new Error(`${name} ended early:\n${lastWords()}`);
    };
    return {
      pid: child.pid,
      mustRun,
      lastWords,
      stop: () => this.#stop(child),
      printed: async (pattern) => {
        for (let waited = 0; waited < START_MS; waited += POLL_MS) {
          const [, found] = pattern.exec(readFileSync(log, "utf8")) ?? [];
          if (found !== undefined) return found;
          mustRun();
          await sleep(POLL_MS);
        }
        throw new Error(`${name} did not print ${pattern.source}:\n${lastWords()}`);
      },
    };
  }

  /** The same command line, held to one core where the bench pins. */
  onCore(core: 0 | 1, commandLine: readonly string[]): readonly string[] {
    return this.#pinned ? ["taskset", "-c", String(core), ...commandLine] : commandLine;
  }

  /** Ids of everything that runs for the bench, itself included. */
  ids(): ReadonlySet<number> {
    const trees = [...this.#children].flatMap(({ pid }) => (pid === undefined ? [] : processTree(pid)));
    return new Set([process.pid, ...trees]);
  }

  async stopAll(): Promise<void> {
    await Promise.all([...this.#children].map((child) => this.#stop(child)));
  }

  /** Asks first: nginx's master has to end its workers. */
  async #stop(child: ChildProcess): Promise<void> {
    child.kill("SIGTERM");
    for (let waited = 0; this.#children.has(child); waited += POLL_MS) {
      if (waited >= STOP_MS) child.kill("SIGKILL");
      await sleep(POLL_MS);
    }
  }
}
