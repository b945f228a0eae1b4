import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { closeSync, existsSync, globSync, openSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Installation } from "./installation.ts";
import { waitFor } from "./progress.ts";

/** The two programs that run in the background, each with a pid file and a log in the data folder. */
export interface Program {
  readonly name: "server" | "daemon";
  readonly bin: string;
  readonly args: readonly string[];
  /** Content that makes the program another one when it changes. */
  readonly settings: string;
}

const STOP_SECONDS = 30;

const logFile = (at: Installation, name: string): string => join(at.dataDir, `${name}.log`);
const pidFile = (at: Installation, name: string): string => join(at.dataDir, `${name}.pid`);
const buildFile = (at: Installation, name: string): string => join(at.dataDir, `${name}.build`);

/** @returns the pid of the program if it runs, in any version; never that of a stranger who got the same number. */
export function runningPid(at: Installation, name: string): number | null {
  try {
    const pid = Number(readFileSync(pidFile(at, name), "utf8"));
    const commandLine = readFileSync(`/proc/${pid}/cmdline`, "utf8");
    return commandLine.includes("fairlead") && commandLine.includes(at.dataDir) ? pid : null;
  } catch {
    return null;
  }
}

/** Whether what runs is what would be started now: same build, same settings. */
export function runsAsWanted(at: Installation, program: Program): boolean {
  const file = buildFile(at, program.name);
  return (
    runningPid(at, program.name) !== null && existsSync(file) && readFileSync(file, "utf8") === fingerprint(at, program)
  );
}

/** @param onceArgs arguments of this one start: they do not make it another program. */
export function start(at: Installation, program: Program, onceArgs: readonly string[] = []): void {
  const log = openSync(logFile(at, program.name), "a", 0o600);
  const child = spawn(process.execPath, [join(at.root, program.bin), ...program.args, ...onceArgs], {
    cwd: at.root,
    env: withoutClientSettings(),
    detached: true,
    stdio: ["ignore", log, log],
  });
  closeSync(log);
  child.unref();
  writeFileSync(pidFile(at, program.name), `${child.pid}\n`);
  writeFileSync(buildFile(at, program.name), fingerprint(at, program));
}

/** Asks it to end, and kills it when it does not. @returns whether it ran. */
export async function stop(at: Installation, name: string): Promise<boolean> {
  const pid = runningPid(at, name);
  if (pid !== null) {
    process.kill(pid, "SIGTERM");
    const gone = async (): Promise<true | undefined> => (runningPid(at, name) === null ? true : undefined);
    // Not to be interrupted half-way: a program that is being stopped is neither there nor gone.
    const interrupt = new AbortController().signal;
    if ((await waitFor({ seconds: STOP_SECONDS, everyMs: 100, interrupt, ask: gone })) === null)
      process.kill(pid, "SIGKILL");
  }
  rmSync(pidFile(at, name), { force: true });
  rmSync(buildFile(at, name), { force: true });
  return pid !== null;
}

/** The end of a log, for a failure that the log explains. */
export function lastLines(at: Installation, name: string, count: number): string {
  const file = logFile(at, name);
  const lines = existsSync(file) ? readFileSync(file, "utf8").trimEnd().split("\n").slice(-count) : [];
  return [`The last lines of ${file}:`, ...lines.map((line) => `  ${line}`)].join("\n");
}

/** Client settings of the caller's shell (a sourced quickstart.env) must not become settings of the programs. */
function withoutClientSettings(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("FAIRLEAD_")));
}

function fingerprint(at: Installation, { args, settings }: Program): string {
  const builds = globSync("packages/*/dist/.tsbuildinfo", { cwd: at.root }).toSorted();
  const times = builds.map((path) => `${path} ${statSync(join(at.root, path)).mtimeMs}`);
  return createHash("sha256")
    .update(JSON.stringify([args, settings, times]))
    .digest("hex");
}
