import type { Command } from "commander";
import { addPlatformOptions, addProjectOption, platformHost } from "../client-options.ts";
import type { Context } from "../context.ts";
import { addLogOptions, type LogOptions, printLogs } from "../log-lines.ts";
import { NODE_ARGUMENT, nodeIdOf, nodePath } from "../nodes/node-reference.ts";

/** `fairlead node logs NODE`. */
export function addNodeLogsCommand(node: Command, context: Context): void {
  addLogOptions(addProjectOption(addPlatformOptions(node.command("logs"))))
    .description("show what a node's engine prints")
    .argument(...NODE_ARGUMENT)
    .addHelpText(
      "after",
      "\nStandard error lines are among them. For owners and administrators: engines may print what they were asked.\n" +
        "\nExamples:\n  fairlead node logs attic --tail 100\n  fairlead node logs attic --follow --since 10m",
    )
    .action((name: string, options: LogOptions) => showLogs(context, name, options));
}

async function showLogs(context: Context, name: string, options: LogOptions): Promise<void> {
  const host = platformHost(context, options);
  await printLogs(context, { host, path: `${nodePath(await nodeIdOf(host, name))}/logs` }, options);
}
