import { CliError, UsageError } from "../cli-error.ts";
import type { Terminal } from "./terminal.ts";
import { visible } from "./visible.ts";

/** Permanent deletions are confirmed by typing the name. */

export interface ConfirmOptions {
  readonly confirm?: string;
}

export interface Condemned {
  /** "project", "agent". */
  readonly kind: string;
  readonly name: string;
  /** Part of the prompt: "with its nodes, keys and chats". */
  readonly goesWithIt: string;
}

/** @returns the option's flags and description. */
export function confirmOption(kind: string): [string, string] {
  return ["--confirm <name>", `the ${kind}'s name, to confirm without a prompt`];
}

/** @throws UsageError if no prompt is possible; CliError if the name does not match */
export async function confirmName(terminal: Terminal, condemned: Condemned, options: ConfirmOptions): Promise<void> {
  const { kind, name } = condemned;
  const typed = options.confirm ?? (await askName(terminal, condemned));
  if (typed === name) return;
  throw new CliError(`"${visible(typed)}" is not the name of this ${kind}, "${visible(name)}". Nothing was deleted.`);
}

async function askName(terminal: Terminal, { kind, name, goesWithIt }: Condemned): Promise<string> {
  if (!terminal.inputIsInteractive) {
    throw new UsageError(`this permanently deletes the ${kind}; to confirm, add --confirm NAME`);
  }
  terminal.note(`This permanently deletes "${visible(name)}" ${goesWithIt}.`);
  return terminal.ask(`Type the ${kind}'s name to confirm`);
}
