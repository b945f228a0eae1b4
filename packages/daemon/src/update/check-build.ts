import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { reasonOf } from "../log.ts";

const run = promisify(execFile);
/** A machine under load starts programs slowly. */
const CHECK_MS = 60_000;

/** What is asked of a new version before it takes over: that it starts, is what it should be, and can read what is here. */
export interface CheckedBuild {
  readonly program: string;
  readonly version: string;
  /** Of `fairlead-daemon check`, so that it looks where this daemon does. */
  readonly flags: readonly string[];
  readonly signal: AbortSignal;
}

/** @returns why it is no good, or null */
export async function checkBuild({ program, version, flags, signal }: CheckedBuild): Promise<string | null> {
  const ask = async (...args: string[]): Promise<string> =>
    (await run(program, args, { timeout: CHECK_MS, signal })).stdout.trim();
  try {
    const says = await ask("--version");
    if (!says.startsWith(`${version} (`)) return `it says that it is ${says.slice(0, 100)}`;
    await ask("check", ...flags);
    return null;
  } catch (error) {
    signal.throwIfAborted();
    const said = error instanceof Error && "stderr" in error ? String(error.stderr).trim() : "";
    return `it cannot run here: ${(said || reasonOf(error)).slice(-500)}`;
  }
}
