import { readFileSync } from "node:fs";
import type { Command } from "commander";
import { expect, test } from "vitest";
import { commandReference } from "./command-reference.ts";
import { buildProgram } from "./program.ts";
import { testContext } from "./testing/run.ts";

const program = buildProgram(testContext());
const commands = (command: Command): Command[] =>
  command.commands.length === 0 ? [command] : command.commands.flatMap(commands);

test("docs/cli.md matches the commands (regenerate it with `node --conditions=fairlead-source scripts/generate-docs.ts`)", () => {
  expect(readFileSync(new URL("../../../docs/cli.md", import.meta.url), "utf8")).toBe(commandReference(program));
});

test.each(commands(program).map((command) => [command.name(), command] as const))(
  "%s has a description, --json and an example",
  (_, command) => {
    expect(command.description()).not.toBe("");
    expect(command.options.map(({ long }) => long)).toContain("--json");
    let help = "";
    command.configureOutput({ writeOut: (text) => void (help += text) }).outputHelp();
    expect(help).toMatch(/\nExamples?:\n {2}(?:\S+ \| |export \w+=\$\()?fairlead|git diff/);
  },
);
