import type { Command } from "commander";
import { CliError } from "../../cli-error.ts";
import type { CommandContext } from "../../context.ts";
import { CONFIG_OPTION, configFileOf, type LocalOptions, withOperations } from "../../platform/local-admin.ts";
import { print } from "../../terminal/output.ts";
import { visible } from "../../terminal/visible.ts";

const WIDEST_CHECK = 18;

export function addDoctorCommand(program: Command, context: CommandContext): void {
  program
    .command("doctor")
    .description("check the server's configuration and environment, on its own machine; exits with 1 if a check fails")
    .option(...CONFIG_OPTION)
    .option("--json", "print JSON")
    .addHelpText("after", "\nExample:\n  fairlead doctor --config /etc/fairlead/config.yaml")
    .action((options: LocalOptions) => examine(context, options));
}

async function examine(context: CommandContext, options: LocalOptions): Promise<void> {
  const findings = await withOperations(context, options, (operations) =>
    operations.doctor({ configFile: configFileOf(options, context.env) ?? null }),
  );
  print(
    context.terminal,
    { findings },
    {
      json: options.json,
      text: () =>
        findings
          .map(({ check, status, message }) => `${status.padEnd(8)}${check.padEnd(WIDEST_CHECK)}${indented(message)}\n`)
          .join(""),
    },
  );
  const wrong = findings.filter(({ status }) => status === "fail").length;
  if (wrong > 0) throw new CliError(`${wrong} of ${findings.length} checks failed`);
}

/** Aligns continuation lines with the first line of the message. */
function indented(message: string): string {
  return message
    .split("\n")
    .map((line) => visible(line))
    .join(`\n${" ".repeat(8 + WIDEST_CHECK)}`);
}
