import { readFileSync } from "node:fs";
import { CliError } from "../cli-error.ts";
import type { Terminal } from "../terminal/terminal.ts";

/** Reads a secret's value. Never an argument: other local users can read those. */

/** @param file undefined for stdin. @returns its exact contents. @throws CliError */
export async function readSecretValue(terminal: Terminal, file: string | undefined): Promise<string> {
  if (file === undefined && terminal.inputIsInteractive) terminal.note("enter the value, then press Ctrl-D");
  const value = file === undefined ? await terminal.readInput() : readExactly(file);
  if (value === "") throw new CliError(`${file ?? "Stdin"} is empty.`);
  // The decoder's replacement for invalid bytes.
  if (value.includes("\uFFFD")) throw notText(file ?? "Stdin");
  return value;
}

function readExactly(file: string): string {
  let bytes: Buffer;
  try {
    bytes = readFileSync(file);
  } catch (cause) {
    throw new CliError(`Cannot read ${file}.`, { cause });
  }
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
}

function notText(source: string): CliError {
  return new CliError(
    `${source} is not UTF-8 text. Encode it, for example with base64, and decode it in the program that uses it.`,
  );
}
