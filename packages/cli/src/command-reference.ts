import type { Command } from "commander";

/** Generates `docs/cli.md` from the help of the commands. */

const WIDTH = 110;

/** @param program with all commands. */
export function commandReference(program: Command): string {
  const commands = leavesOf(program);
  return [
    ...HEAD,
    "| command | description |",
    "| --- | --- |",
    ...commands.map((command) => `| [\`${nameOf(command)}\`](#${anchorOf(command)}) | ${command.description()} |`),
    "",
    ...commands.flatMap((command) => [`## ${nameOf(command)}`, "", "```text", helpOf(command), "```", ""]),
  ].join("\n");
}

const HEAD = [
  "# Command-line reference",
  "",
  "Generated from the commands' own help (`fairlead COMMAND --help`).",
  "",
  "**Authentication.** `fairlead login` signs you in. Its tokens are stored in `$XDG_CONFIG_HOME/fairlead/credentials.json` (mode 0600, one entry per platform)",
  "and renewed automatically. `FAIRLEAD_TOKEN`, for scripts, takes precedence. The inference host uses a project key, `FAIRLEAD_API_KEY`.",
  "",
  "**Platform and project.** The platform is `--base-url`, or else `FAIRLEAD_BASE_URL`, the platform of the last login, or `http://127.0.0.1:8080`. The project",
  "is `--project`, or else `FAIRLEAD_PROJECT_ID`, or the one set with `fairlead project use`. Flags take precedence over the environment, and that over `--env-file`.",
  "",
  "**Network.** `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` are used ([syntax](daemon.md)). `FAIRLEAD_CA_FILE` names a PEM file of additional certificate authorities.",
  "",
  "**Output.** Results go to stdout, notes and errors to stderr. `--json` prints the API's response; lists contain all pages. Exit codes: 0 success,",
  "1 failure, 2 invalid command line, 130 Ctrl-C. Creates are sent with an `Idempotency-Key` and retried if the response is lost, so nothing is created",
  "twice.",
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
