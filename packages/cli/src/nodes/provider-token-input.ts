import { readFileSync } from "node:fs";
import { CliError } from "../cli-error.ts";
import { Refused } from "../platform/http-client.ts";
import type { Terminal } from "../terminal/terminal.ts";

/** Reads a provider token. Never an argument: other local users can read those. */

export const PROVIDER_TOKEN_OPTION = [
  "--provider-token-file <file>",
  "file that contains the provider's API token, or - for stdin (default: $FAIRLEAD_PROVIDER_TOKEN)",
] as const;

export interface ProviderTokenOptions {
  readonly providerTokenFile?: string;
}

/** @throws CliError */
export async function readProviderToken(
  { terminal, env }: { readonly terminal: Terminal; readonly env: Readonly<Record<string, string | undefined>> },
  { providerTokenFile: file }: ProviderTokenOptions,
): Promise<string | undefined> {
  if (file === undefined) return env["FAIRLEAD_PROVIDER_TOKEN"] || undefined;
  const token = (file === "-" ? await terminal.readInput() : readText(file)).trim();
  if (token === "") throw new CliError(`${file === "-" ? "Stdin" : file} is empty: expected a token.`);
  return token;
}

/** Adds advice to errors about the token: where it came from, or how to set one. */
export async function orTokenAdvice<T>(
  { token, providerTokenFile }: ProviderTokenOptions & { readonly token: string | undefined },
  answer: Promise<T>,
): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    const isAbout = error instanceof Refused && error.param === "providerToken";
    if (!isAbout || providerTokenFile !== undefined) throw error;
    const advice =
      token === undefined
        ? "Write it to a file that only you can read and pass that file as --provider-token-file."
        : "The token came from $FAIRLEAD_PROVIDER_TOKEN.";
    throw new CliError(`${error.message}\n${advice}`, { cause: error });
  }
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    throw new CliError(`Cannot read ${file}.`, { cause });
  }
}
