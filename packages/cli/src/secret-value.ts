import { readFileSync } from "node:fs";
import { CliError } from "./cli-error.ts";
import type { Terminal } from "./terminal.ts";

/** A secret's value as people give it. Never an argument: other users of the machine can read those. */

/** @param file undefined: standard input. @returns exactly what it holds. @throws CliError */
export async function readSecretValue(terminal: Terminal, file: string | undefined): Promise<string> {
  if (file === undefined && terminal.inputIsInteractive) terminal.note("type the value, then Ctrl-D");
  const value = file === undefined ? await terminal.readInput() : readExactly(file);
  if (value === "") throw new CliError(`${file ?? "Standard input"} is empty.`);
  // What decoding puts in the place of bytes that are no text.
  if (value.includes("\uFFFD")) throw notText(file ?? "Standard input");
  return value;
}

function readExactly(file: string): string {
  let bytes: Buffer;
  try {
    bytes = readFileSync(file);
  } catch (cause) {
    throw new CliError(`${file} cannot be read.`, { cause });
  }
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
}

function notText(source: string): CliError {
  return new CliError(
    `${source} is no UTF-8 text. Encode it, say with base64, and let the program that takes it decode it.`,
  );
}
