import { nodeEventSchema } from "@fairlead/protocol/resources";
import type { Command } from "commander";
import { addPlatformOptions, addProjectOption, platformHost } from "../client-options.ts";
import type { Context } from "../context.ts";
import { addHistoryOptions, type HistoryOptions, printHistory } from "../history.ts";
import { NODE_ARGUMENT, nodeIdOf, nodePath } from "../nodes/node-reference.ts";

/** `fairlead node events NODE`: why did it restart? */
export function addNodeEventsCommand(node: Command, context: Context): void {
  addHistoryOptions(addProjectOption(addPlatformOptions(node.command("events"))))
    .description("show what happened to a node and why, the newest last")
    .argument(...NODE_ARGUMENT)
    .addHelpText(
      "after",
      "\nExamples:\n  fairlead node events attic --since 1d\n" +
        "  fairlead node events attic --kind workload_exited,workload_stopped,workload_started   # why did it restart?",
    )
    .action((name: string, options: HistoryOptions) => showEvents(context, name, options));
}

async function showEvents(context: Context, name: string, options: HistoryOptions): Promise<void> {
  const host = platformHost(context, options);
  const path = `${nodePath(await nodeIdOf(host, name))}/events`;
  await printHistory(context, { host, path, item: nodeEventSchema, stateOf: ({ status }) => status }, options);
}
