import type { Command } from "commander";

/** The text of `docs/cli.md`, from the commands' own help; a test compares the two. */

const WIDTH = 110;

/** @param program with all its commands. */
export function commandReference(program: Command): string {
  const commands = leavesOf(program);
  return [
    ...HEAD,
    "| command | what it does |",
    "| --- | --- |",
    ...commands.map((command) => `| [\`${nameOf(command)}\`](#${anchorOf(command)}) | ${command.description()} |`),
    "",
    ...commands.flatMap((command) => [`## ${nameOf(command)}`, "", "```text", helpOf(command), "```", ""]),
  ].join("\n");
}

const HEAD = [
  "# The command line",
  "",
  "Generated from the commands' own help (`fairlead COMMAND --help`).",
  "",
  "**Who calls.** `fairlead login` signs you in; its tokens rest in `$XDG_CONFIG_HOME/fairlead/credentials.json` (mode 0600, one entry a platform)",
  "and are renewed by themselves. `FAIRLEAD_TOKEN` goes before it, for scripts. The inference host takes a project key, `FAIRLEAD_API_KEY`.",
  "",
  "**Where.** `--base-url`, else `FAIRLEAD_BASE_URL`, else the platform of the last login, else `http://127.0.0.1:8080`. The project: `--project`, else",
  "`FAIRLEAD_PROJECT_ID`, else that of `fairlead project use`. Flags go before the environment, and that before `--env-file`.",
  "",
  "**What comes out.** Results go to standard output, notes and errors to standard error. `--json` prints the answer as the API gives it; lists are",
  "followed to their end. Exit codes: 0 done, 1 failed, 2 the command line is wrong, 130 Ctrl-C. A create is sent with an `Idempotency-Key`, and",
  "sent again when its answer was lost, so it never makes two.",
  "",
];

function leavesOf(command: Command): Command[] {
  return command.commands.length === 0 ? [command] : command.commands.flatMap(leavesOf);
}

function nameOf(command: Command): string {
  return command.parent ? `${nameOf(command.parent)} ${command.name()}` : command.name();
}

function anchorOf(command: Command): string {
  return nameOf(command).replaceAll(" ", "-");
}

function helpOf(command: Command): string {
  let text = "";
  command.configureOutput({ writeOut: (part) => void (text += part), getOutHelpWidth: () => WIDTH });
  command.outputHelp();
  return text.trimEnd();
}
