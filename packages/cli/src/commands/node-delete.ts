import type { Command } from "commander";
import { z } from "zod";
import { addPlatformOptions, addProjectOption, platformHost } from "../client-options.ts";
import type { Context } from "../context.ts";
import { callJson } from "../http-client.ts";
import { NODE_ARGUMENT, nodeIdOf, nodePath } from "../nodes/node-reference.ts";
import { findNode, watchNodeDeletion } from "../nodes/node-watch.ts";
import { print } from "../output.ts";
import { addWaitOptions, newestEvent, type WaitOptions, waits } from "../watch.ts";

interface DeleteOptions extends WaitOptions {
  readonly abandonMachine?: boolean;
}

/** `fairlead node delete`. */
export function addNodeDeleteCommand(node: Command, context: Context): void {
  const command = addProjectOption(addPlatformOptions(node.command("delete"))).argument(...NODE_ARGUMENT);
  addWaitOptions(command, "it and its rented machine are gone")
    .description(
      "delete a node; its daemon stops and removes what ran there, as soon as it hears of it. A rented machine is given back",
    )
    .option("--abandon-machine", "forget the node although its rented machine may still be there, and cost")
    .addHelpText(
      "after",
      "\nExamples:\n  fairlead node drain attic && fairlead node delete attic\n  fairlead node delete rented --wait",
    )
    .action((name: string, options: DeleteOptions) => deleteNode(context, name, options));
}

async function deleteNode(context: Context, name: string, options: DeleteOptions): Promise<void> {
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
