import { readFileSync } from "node:fs";
import { CliError, UsageError } from "../cli-error.ts";
import type { Terminal } from "../terminal/terminal.ts";

/** Reads a config in YAML or JSON from a file or stdin. */

export type Fields = Readonly<Record<string, unknown>>;

/** @param what for messages: "an engine config, such as `image: …`". @throws UsageError, CliError */
export async function readFieldsFile(terminal: Terminal, file: string, what: string): Promise<Fields> {
  const text = file === "-" ? await terminal.readInput() : readText(file);
  const { parse } = await import("yaml");
  let value: unknown;
  try {
    // JSON is a subset of YAML.
    value = parse(text);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new UsageError(`${nameOf(file)} is not valid YAML or JSON: ${reason}`, { cause });
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Fields;
  throw new UsageError(`${nameOf(file)} must contain the fields of ${what}.`);
}

function nameOf(file: string): string {
  return file === "-" ? "Stdin" : file;
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    throw new CliError(`Cannot read ${file}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
}
