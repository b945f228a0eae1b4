import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { closeSync, existsSync, globSync, openSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Installation } from "./installation.ts";
import { waitFor } from "./progress.ts";

/** The two background programs, each with a pid file and a log in the data folder. */
export interface Program {
  readonly name: "server" | "daemon";
  readonly bin: string;
  readonly args: readonly string[];
  /** A change requires a restart. */
  readonly settings: string;
}

const STOP_SECONDS = 30;

const logFile = (at: Installation, name: string): string => join(at.dataDir, `${name}.log`);
const pidFile = (at: Installation, name: string): string => join(at.dataDir, `${name}.pid`);
const buildFile = (at: Installation, name: string): string => join(at.dataDir, `${name}.build`);

/** @returns the pid of the running program, of any version. Ignores unrelated processes that reuse the pid. */
export function runningPid(at: Installation, name: string): number | null {
  try {
    const pid = Number(readFileSync(pidFile(at, name), "utf8"));
    const commandLine = readFileSync(`/proc/${pid}/cmdline`, "utf8");
    return commandLine.includes("fairlead") && commandLine.includes(at.dataDir) ? pid : null;
  } catch {
    return null;
  }
}

/** Whether the running program has the current build and settings. */
export function runsAsWanted(at: Installation, program: Program): boolean {
  const file = buildFile(at, program.name);
  return (
    runningPid(at, program.name) !== null && existsSync(file) && readFileSync(file, "utf8") === fingerprint(at, program)
  );
}

/** @param onceArgs arguments for this start only. */
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

/** Stops the program, with SIGKILL after a timeout. @returns whether it was running. */
export async function stop(at: Installation, name: string): Promise<boolean> {
  const pid = runningPid(at, name);
  if (pid !== null) {
    process.kill(pid, "SIGTERM");
    const gone = async (): Promise<true | undefined> => (runningPid(at, name) === null ? true : undefined);
    // Not interruptible, so that the program's state is known afterwards.
    const interrupt = new AbortController().signal;
    if ((await waitFor({ seconds: STOP_SECONDS, everyMs: 100, interrupt, ask: gone })) === null)
      process.kill(pid, "SIGKILL");
  }
  rmSync(pidFile(at, name), { force: true });
  rmSync(buildFile(at, name), { force: true });
  return pid !== null;
}

/** The last lines of a log, for error messages. */
export function lastLines(at: Installation, name: string, count: number): string {
  const file = logFile(at, name);
  const lines = existsSync(file) ? readFileSync(file, "utf8").trimEnd().split("\n").slice(-count) : [];
  return [`Last lines of ${file}:`, ...lines.map((line) => `  ${line}`)].join("\n");
}

/** Client settings in the caller's shell (a sourced quickstart.env) must not affect the programs. */
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
