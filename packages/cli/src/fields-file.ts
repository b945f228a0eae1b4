import { readFileSync } from "node:fs";
import { CliError, UsageError } from "./cli-error.ts";
import type { Terminal } from "./terminal.ts";

/** A config as people give it: YAML or JSON in a file or on standard input. */

export type Fields = Readonly<Record<string, unknown>>;

/** @param what it is, for people: "an engine config, such as `image: …`". @throws UsageError, CliError */
export async function readFieldsFile(terminal: Terminal, file: string, what: string): Promise<Fields> {
  const text = file === "-" ? await terminal.readInput() : readText(file);
  const { parse } = await import("yaml");
  let value: unknown;
  try {
    // JSON is YAML too.
    value = parse(text);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new UsageError(`${nameOf(file)} is neither YAML nor JSON: ${reason}`, { cause });
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Fields;
  throw new UsageError(`${nameOf(file)} must hold the fields of ${what}.`);
}

function nameOf(file: string): string {
  return file === "-" ? "Standard input" : file;
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    throw new CliError(`${file} cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
}
