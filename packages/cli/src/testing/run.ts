import type { LoadControlPlane } from "../control-plane.ts";
import { runProgram } from "../program.ts";
import { type FakeTerminal, fakeTerminal } from "./fake-terminal.ts";

export interface RunOptions {
  readonly env?: Record<string, string>;
  readonly terminal?: FakeTerminal;
  readonly loadControlPlane?: LoadControlPlane;
}

/** Runs one command line against a fake terminal. */
export async function run(
  argv: readonly string[],
  { env = {}, terminal = fakeTerminal(), loadControlPlane = neverLoaded }: RunOptions = {},
): Promise<{ code: number; out: string; notes: string }> {
  const code = await runProgram({ terminal, env, loadControlPlane, version: "1.2.3" }, argv);
  return { code, ...terminal.printed };
}

const neverLoaded: LoadControlPlane = () => Promise.reject(new Error("this command must not load the control plane"));
