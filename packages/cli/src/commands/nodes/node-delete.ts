import type { Command } from "commander";
import { z } from "zod";
import type { CommandContext } from "../../context.ts";
import { NODE_ARGUMENT, nodeIdOf, nodePath } from "../../nodes/node-reference.ts";
import { findNode, watchNodeDeletion } from "../../nodes/node-watch.ts";
import { addPlatformOptions, addProjectOption, platformHost } from "../../platform/client-options.ts";
import { callJson } from "../../platform/http-client.ts";
import { print } from "../../terminal/output.ts";
import { addWaitOptions, newestEvent, type WaitOptions, waits } from "../../terminal/watch.ts";

interface DeleteOptions extends WaitOptions {
  readonly abandonMachine?: boolean;
}

/** `fairlead node delete`. */
export function addNodeDeleteCommand(node: Command, context: CommandContext): void {
  const command = addProjectOption(addPlatformOptions(node.command("delete"))).argument(...NODE_ARGUMENT);
  addWaitOptions(command, "the node and its rented machine are deleted")
    .description("delete a node; its daemon removes all workloads once it is connected. A rented machine is released")
    .option("--abandon-machine", "delete the node even if its rented machine may still exist and cost money")
    .addHelpText(
      "after",
      "\nExamples:\n  fairlead node drain local && fairlead node delete local\n  fairlead node delete rented --wait",
    )
    .action((name: string, options: DeleteOptions) => deleteNode(context, name, options));
}

async function deleteNode(context: CommandContext, name: string, options: DeleteOptions): Promise<void> {
  const host = platformHost(context, options);
  const id = await nodeIdOf(host, name);
  const wait = waits(context.terminal, options);
  const after = wait ? await newestEvent(host, nodePath(id)) : "";
  const path = `${nodePath(id)}${options.abandonMachine ? "?abandonMachine=true" : ""}`;
  const answer = await callJson(host, { method: "DELETE", path }, z.object({}));
  if (wait) await watchNodeDeletion(context, host, { id, after });
  const left = wait || options.json ? null : await findNode(host, id);
  const text = left === null ? `deleted ${id}\n` : `${id} is ${left.status}: ${left.statusMessage}\n`;
  print(context.terminal, answer, { json: options.json, text: () => text });
}
