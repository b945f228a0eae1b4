import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";

const root = new URL("../..", import.meta.url).pathname;

export interface ScriptResult {
  readonly code: number | null;
  readonly out: string;
  readonly errors: string;
}

/** Runs a script of this repository the way a person does: with nothing on standard input. */
export async function runScript(
  script: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Promise<ScriptResult> {
  const child = spawn(`${root}scripts/${script}`, args, {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [out, errors, code] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    new Promise<number | null>((resolve, reject) => child.once("close", resolve).once("error", reject)),
  ]);
  return { code, out, errors };
}
