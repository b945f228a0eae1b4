import { BUILD } from "@fairlead/protocol/values/build-info";
import { systemClock } from "@fairlead/protocol/values/clock";
import { systemIds } from "@fairlead/protocol/values/ids";
import { processEnvironment, userConfigDir } from "./config.ts";
import type { CommandContext } from "./context.ts";
import { loadControlPlane } from "./platform/control-plane.ts";
import { runProgram } from "./program.ts";
import { browserOpener } from "./sign-in/browser.ts";
import { CredentialsFile } from "./sign-in/credentials-file.ts";
import { Logins } from "./sign-in/logins.ts";
import { processTerminal } from "./terminal/terminal.ts";

/** @param argv the arguments after the program's name. @returns the exit code. */
export async function main(argv: string[]): Promise<number> {
  return runProgram(processContext(), argv);
}

/** The real dependencies. */
export function processContext(): CommandContext {
  const terminal = processTerminal();
  const env = processEnvironment();
  const clock = systemClock;
  const ids = systemIds(() => clock.now());
  const logins = new Logins({ file: new CredentialsFile(userConfigDir(), { clock, ids }), clock, terminal });
  const openBrowser = browserOpener(env, process.platform);
  return { terminal, env, logins, openBrowser, clock, ids, loadControlPlane, ...BUILD };
}
