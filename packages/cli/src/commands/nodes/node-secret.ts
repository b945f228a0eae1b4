import { nodeSecretSchema } from "@fairlead/protocol/secrets";
import type { Command } from "commander";
import type { CommandContext } from "../../context.ts";
import { NODE_ARGUMENT, nodeIdOf, nodePath } from "../../nodes/node-reference.ts";
import { addSecretCommands } from "../secret-commands.ts";

export function addNodeSecretCommands(node: Command, context: CommandContext): void {
  addSecretCommands(node, context, {
    kind: "node",
    description: "secrets of a node, for its engine; values are never shown",
    argument: NODE_ARGUMENT,
    schema: nodeSecretSchema,
    path: async (host, name) => nodePath(await nodeIdOf(host, name)),
    example: { owner: "$FAIRLEAD_NODE_ID", secret: "HF_TOKEN" },
    staleSince: "the node has a new key",
  });
}
