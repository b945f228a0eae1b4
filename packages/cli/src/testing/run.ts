import { type Clock, systemClock } from "@fairlead/protocol/values/clock";
import { systemIds } from "@fairlead/protocol/values/ids";
import type { CommandContext } from "../context.ts";
import type { LoadControlPlane } from "../platform/control-plane.ts";
import { runProgram } from "../program.ts";
import type { OpenBrowser } from "../sign-in/browser.ts";
import { CredentialsFile } from "../sign-in/credentials-file.ts";
import { Logins } from "../sign-in/logins.ts";
import { type FakeTerminal, fakeTerminal } from "./fake-terminal.ts";

export interface RunOptions {
  readonly env?: Record<string, string>;
  readonly terminal?: FakeTerminal;
  readonly loadControlPlane?: LoadControlPlane;
  /** Folder of the credentials; by default it does not exist. */
  readonly configDir?: string;
  readonly openBrowser?: OpenBrowser;
  readonly clock?: Clock;
}

/** Runs one command line against a fake terminal. */
export async function run(
  argv: readonly string[],
  { terminal = fakeTerminal(), ...options }: RunOptions = {},
): Promise<{ code: number; out: string; notes: string }> {
  const code = await runProgram(testContext({ terminal, ...options }), argv);
  return { code, ...terminal.printed };
}

export function testContext({
  env = {},
  terminal = fakeTerminal(),
  loadControlPlane = neverLoaded,
  configDir = "/nonexistent/fairlead",
  openBrowser = () => false,
  clock = systemClock,
}: RunOptions = {}): CommandContext {
  const ids = systemIds(() => clock.now());
  const logins = new Logins({ file: new CredentialsFile(configDir, { clock, ids }), clock, terminal });
  return { terminal, env, logins, openBrowser, clock, ids, loadControlPlane, version: "1.2.3", commit: "development" };
}

const neverLoaded: LoadControlPlane = () => Promise.reject(new Error("this command must not load the control plane"));
