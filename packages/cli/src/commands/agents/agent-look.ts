import { agentEventSchema } from "@fairlead/protocol/agents";
import type { Command } from "commander";
import { AGENT_ARGUMENT, agentPathOf } from "../../agents/agent-reference.ts";
import type { CommandContext } from "../../context.ts";
import { addPortOption, connectTo, type GatewayConnectOptions } from "../../gateway/connect.ts";
import { addPlatformOptions, addProjectOption, platformHost } from "../../platform/client-options.ts";
import { addHistoryOptions, type HistoryOptions, printHistory } from "../../terminal/history.ts";
import { addLogOptions, type LogLineOptions, printLogs } from "../../terminal/log-lines.ts";

/** `fairlead agent events|logs|connect AGENT`. */
export function addAgentLookCommands(agent: Command, context: CommandContext): void {
  const command = (name: string): Command =>
    addProjectOption(addPlatformOptions(agent.command(name))).argument(...AGENT_ARGUMENT);
  addHistoryOptions(command("events"))
    .description("show an agent's events and their reasons, newest last")
    .addHelpText("after", "\nExample:\n  fairlead agent events bot --since 1d")
    .action((name: string, options: HistoryOptions) => showEvents(context, name, options));
  addLogOptions(command("logs"))
    .description("show an agent's logs")
    .addHelpText(
      "after",
      "\nIncludes stdout and stderr. Requires the owner or admin role, because agents may log the input they receive.\n" +
        "\nExamples:\n  fairlead agent logs bot --tail 100\n  fairlead agent logs bot --follow --since 10m",
    )
    .action((name: string, options: LogLineOptions) => showLogs(context, name, options));
  addPortOption(command("connect"), "agent")
    .description(
      "connect to an agent's port: print its URL and a token valid for 15 minutes, or forward a local port to it",
    )
    .addHelpText("after", CONNECT_HELP)
    .action((name: string, options: GatewayConnectOptions) => connect(context, name, options));
}

const CONNECT_HELP = `
Traffic is not metered; the audit log records only the connect request. Requires the owner or admin role.

Examples:
  fairlead agent connect bot --port 9000       # then: curl localhost:9000/healthz
  fairlead agent connect bot --json | jq -r .authToken`;

async function showEvents(context: CommandContext, name: string, options: HistoryOptions): Promise<void> {
  const host = platformHost(context, options);
  const path = `${await agentPathOf(host, name)}/events`;
  const history = { host, path, item: agentEventSchema };
  await printHistory(context, { ...history, stateOf: ({ lifecycleState }) => lifecycleState }, options);
}

async function showLogs(context: CommandContext, name: string, options: LogLineOptions): Promise<void> {
  const host = platformHost(context, options);
  await printLogs(context, { host, path: `${await agentPathOf(host, name)}/logs` }, options);
}

async function connect(context: CommandContext, name: string, options: GatewayConnectOptions): Promise<void> {
  const host = platformHost(context, options);
  const path = `${await agentPathOf(host, name)}/connect`;
  await connectTo(context, { host, path, what: `agent ${name}` }, options);
}
