import { type Command, Option } from "commander";

/** @param what the help text. */
export function addConnectorOption(command: Command, what: string): Command {
  return command.addOption(new Option("--connector <slug>", what).argParser(addSlug));
}

/** @param before false after `--no-connector`. */
function addSlug(slug: string, before: readonly string[] | false | undefined): readonly string[] {
  return [...(before || []), slug];
}
