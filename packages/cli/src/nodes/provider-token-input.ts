import { readFileSync } from "node:fs";
import { CliError } from "../cli-error.ts";
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

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    throw new CliError(`${file} cannot be read.`, { cause });
  }
}
