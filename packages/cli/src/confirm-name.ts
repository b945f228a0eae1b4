import { CliError, UsageError } from "./cli-error.ts";
import type { Terminal } from "./terminal.ts";
import { visible } from "./visible.ts";

/** What is deleted for good is confirmed by its name. */

export interface ConfirmOptions {
  readonly confirm?: string;
}

export interface Condemned {
  /** "project", "agent". */
  readonly kind: string;
  readonly name: string;
  /** What goes with it, for people: "with its nodes, keys and chats". */
  readonly goesWithIt: string;
}

/** @returns the flags and the description of the option that every such command has. */
export function confirmOption(kind: string): [string, string] {
  return ["--confirm <name>", `the ${kind}'s name, where nobody can be asked for it`];
}

/** @throws UsageError where nobody can be asked; CliError for another name */
export async function confirmName(terminal: Terminal, condemned: Condemned, options: ConfirmOptions): Promise<void> {
  const { kind, name } = condemned;
  const typed = options.confirm ?? (await askName(terminal, condemned));
  if (typed === name) return;
  throw new CliError(`"${visible(typed)}" is not the name of this ${kind}, "${visible(name)}". Nothing was deleted.`);
}

async function askName(terminal: Terminal, { kind, name, goesWithIt }: Condemned): Promise<string> {
  if (!terminal.inputIsInteractive) {
    throw new UsageError(`this deletes the ${kind} for good; repeat its name to confirm: --confirm NAME`);
  }
  terminal.note(`This deletes "${visible(name)}" ${goesWithIt}, for good.`);
  return terminal.ask(`Type the ${kind}'s name to confirm`);
}
