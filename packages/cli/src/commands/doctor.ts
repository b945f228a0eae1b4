import type { Command } from "commander";
import { CliError } from "../cli-error.ts";
import type { Context } from "../context.ts";
import { type LocalOptions, withOperations } from "../local-admin.ts";
import { print } from "../output.ts";
import { visible } from "../visible.ts";

const WIDEST_CHECK = 18;

export function addDoctorCommand(program: Command, context: Context): void {
  program
    .command("doctor")
    .description("look at all that the server stands on, on its own machine; ends with 1 if something is wrong")
    .option("--config <file>", "the server's configuration file; it names the data folder")
    .option("--json", "print the answer as JSON")
    .addHelpText("after", "\nExample:\n  fairlead doctor --config /etc/fairlead/config.yaml")
    .action((options: LocalOptions) => examine(context, options));
}

async function examine(context: Context, options: LocalOptions): Promise<void> {
  const findings = await withOperations(context, options, (operations) => operations.doctor());
  print(
    context.terminal,
    { findings },
    {
      json: options.json,
      text: () =>
        findings
          .map(({ check, status, message }) => `${status.padEnd(8)}${check.padEnd(WIDEST_CHECK)}${visible(message)}\n`)
          .join(""),
    },
  );
  const wrong = findings.filter(({ status }) => status === "fail").length;
  if (wrong > 0) throw new CliError(`${wrong} of ${findings.length} checks failed`);
}
