import { readFileSync } from "node:fs";
import { CliError } from "../cli-error.ts";
import { Refused } from "../http-client.ts";
import type { Terminal } from "../terminal.ts";

/** A provider token as people give it: never as an argument, which every user of the machine can read. */

export const PROVIDER_TOKEN_OPTION = [
  "--provider-token-file <file>",
  "where the provider's API token stands; - for standard input (default: $FAIRLEAD_PROVIDER_TOKEN)",
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
  if (token === "") throw new CliError(`${file === "-" ? "Standard input" : file} holds no token.`);
  return token;
}

/** The platform's answer; where it is about the token, with where that came from, or how to give one. */
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
        ? "Write it into a file that only you can read, and name that by --provider-token-file."
        : "The token is that of $FAIRLEAD_PROVIDER_TOKEN.";
    throw new CliError(`${error.message}\n${advice}`, { cause: error });
  }
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    throw new CliError(`${file} cannot be read.`, { cause });
  }
}
