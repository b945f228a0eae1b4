import { agentEventSchema } from "@fairlead/protocol/agents";
import type { Command } from "commander";
import { AGENT_ARGUMENT, agentPathOf } from "../agents/agent-reference.ts";
import { addPlatformOptions, addProjectOption, platformHost } from "../client-options.ts";
import type { Context } from "../context.ts";
import { addPortOption, type ConnectOptions, connectTo } from "../gateway/connect.ts";
import { addHistoryOptions, type HistoryOptions, printHistory } from "../history.ts";
import { addLogOptions, type LogOptions, printLogs } from "../log-lines.ts";

/** `fairlead agent events|logs|connect AGENT`. */
export function addAgentLookCommands(agent: Command, context: Context): void {
  const command = (name: string): Command =>
    addProjectOption(addPlatformOptions(agent.command(name))).argument(...AGENT_ARGUMENT);
  addHistoryOptions(command("events"))
    .description("show what happened to an agent and why, the newest last")
    .addHelpText("after", "\nExample:\n  fairlead agent events bot --since 1d")
    .action((name: string, options: HistoryOptions) => showEvents(context, name, options));
  addLogOptions(command("logs"))
    .description("show what an agent prints")
    .addHelpText(
      "after",
      "\nStandard error lines are among them. For owners and administrators: agents may print what they were told.\n" +
        "\nExamples:\n  fairlead agent logs bot --tail 100\n  fairlead agent logs bot --follow --since 10m",
    )
    .action((name: string, options: LogOptions) => showLogs(context, name, options));
  addPortOption(command("connect"), "agent")
    .description("reach an agent's port: print its address and a token for 15 minutes, or forward a local port to it")
    .addHelpText("after", CONNECT_HELP)
    .action((name: string, options: ConnectOptions) => connect(context, name, options));
}

const CONNECT_HELP = `
What goes through is not metered, and only the asking is in the audit log. For owners and administrators of the project.

Examples:
  fairlead agent connect bot --port 9000       # then: curl localhost:9000/healthz
  fairlead agent connect bot --json | jq -r .authToken`;

async function showEvents(context: Context, name: string, options: HistoryOptions): Promise<void> {
  const host = platformHost(context, options);
  const path = `${await agentPathOf(host, name)}/events`;
  const history = { host, path, item: agentEventSchema };
  await printHistory(context, { ...history, stateOf: ({ lifecycleState }) => lifecycleState }, options);
}

async function showLogs(context: Context, name: string, options: LogOptions): Promise<void> {
  const host = platformHost(context, options);
  await printLogs(context, { host, path: `${await agentPathOf(host, name)}/logs` }, options);
}

async function connect(context: Context, name: string, options: ConnectOptions): Promise<void> {
  const host = platformHost(context, options);
  const path = `${await agentPathOf(host, name)}/connect`;
  await connectTo(context, { host, path, what: `agent ${name}` }, options);
}
