import { spawn } from "node:child_process";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { asCaller } from "./caller.ts";
import { CLI } from "./fairlead.ts";
import type { Installation } from "./installation.ts";
import type { Step } from "./progress.ts";

/** The caller's login on this machine, stored like by `fairlead login`. */

export interface OwnLogin {
  readonly baseUrl: string;
  readonly email: string;
  /** Creates a session token. Only called without a working login. */
  readonly makeToken: () => Promise<string>;
}

/**
 * Signs in the command line. Keeps a working login of any user.
 * @returns false if no login can be stored, for example without a home folder; the rest works without one
 */
export async function ensureLogin(
  at: Installation,
  { baseUrl, email, makeToken }: OwnLogin,
  step: Step,
): Promise<boolean> {
  if ((await fairlead(at, ["whoami", "--json", "--base-url", baseUrl])).code === 0) {
    step.note("already signed in");
    return true;
  }
  const { code, errors } = await fairlead(at, ["login", "--with-token", "--base-url", baseUrl], await makeToken());
  step.note(code === 0 ? `signed in as ${email}` : `not signed in: ${errors.trim().split("\n", 1)[0]}`);
  return code === 0;
}

/** Removes the login, and revokes it if the server is running. */
export async function endLogin(at: Installation, baseUrl: string): Promise<void> {
  await fairlead(at, ["logout", "--base-url", baseUrl]);
}

async function fairlead(
  at: Installation,
  argv: readonly string[],
  input = "",
): Promise<{ readonly code: number | null; readonly errors: string }> {
  const child = spawn(process.execPath, [join(at.root, CLI), ...argv], { ...asCaller(), cwd: "/", detached: true });
  child.stdin.on("error", () => undefined).end(input);
  child.stdout.resume();
  const [errors, code] = await Promise.all([
    text(child.stderr),
    new Promise<number | null>((resolve, reject) => child.once("close", resolve).once("error", reject)),
  ]);
  return { code, errors };
}
