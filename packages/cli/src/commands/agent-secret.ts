import { agentSecretSchema } from "@fairlead/protocol/agents";
import type { Command } from "commander";
import { AGENT_ARGUMENT, agentPathOf } from "../agents/agent-reference.ts";
import type { Context } from "../context.ts";
import { addSecretCommands } from "./secret-commands.ts";

export function addAgentSecretCommands(agent: Command, context: Context): void {
  addSecretCommands(agent, context, {
    kind: "agent",
    description: "secrets of an agent and of its connectors; no command shows a value",
    argument: AGENT_ARGUMENT,
    schema: agentSecretSchema,
    path: agentPathOf,
    example: { owner: "bot", secret: "HTTP_CONNECTOR_TOKEN" },
    staleSince: "the agent moved, or its node has a new key",
  });
}
