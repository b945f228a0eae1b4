import { type AgentLimits, agentLimitsSchema } from "@fairlead/protocol/resources";
import type { Command } from "commander";
import { AGENT_ARGUMENT, agentPathOf } from "../agents/agent-reference.ts";
import { UsageError } from "../cli-error.ts";
import { addPlatformOptions, addProjectOption, type ClientOptions, platformHost } from "../client-options.ts";
import type { Context } from "../context.ts";
import { factLines } from "../fact-lines.ts";
import { callJson } from "../http-client.ts";
import { print } from "../output.ts";
import { addLimitOptions, describeLimits, describeSpent, type LimitOptions, limitFields } from "./key-limits.ts";

interface SetOptions extends ClientOptions, LimitOptions {}

/** `fairlead agent limits show|set AGENT`. */
export function addAgentLimitCommands(agent: Command, context: Context): void {
  const limits = agent.command("limits").description("what an agent may call and spend");
  const command = (name: string): Command =>
    addProjectOption(addPlatformOptions(limits.command(name))).argument(...AGENT_ARGUMENT);
  command("show")
    .description("show an agent's limits, and what it has spent")
    .addHelpText("after", "\nExample:\n  fairlead agent limits show bot")
    .action((name: string, options: ClientOptions) => showLimits(context, name, options));
  addLimitOptions(command("set"))
    .description("change an agent's limits; what is not named stays. It counts within a second, without a restart")
    .addHelpText(
      "after",
      "\nExamples:\n  fairlead agent limits set bot --budget-daily 2 --model 'attic/*'\n" +
        "  fairlead agent limits set bot --budget-daily none --all-models",
    )
    .action((name: string, options: SetOptions) => setLimits(context, name, options));
}

async function showLimits(context: Context, name: string, options: ClientOptions): Promise<void> {
  const host = platformHost(context, options);
  const limits = await callJson(host, { path: `${await agentPathOf(host, name)}/limits` }, agentLimitsSchema);
  print(context.terminal, limits, { json: options.json, text: limitsText });
}

async function setLimits(context: Context, name: string, options: SetOptions): Promise<void> {
  const host = platformHost(context, options);
  const body = limitFields(options);
  if (body === undefined) throw new UsageError("name a limit to change, such as --budget-daily 2");
  const call = { method: "PATCH", path: `${await agentPathOf(host, name)}/limits`, body } as const;
  const limits = await callJson(host, call, agentLimitsSchema);
  print(context.terminal, limits, { json: options.json, text: limitsText });
}

function limitsText(limits: AgentLimits): string {
  return factLines([
    ["limits", describeLimits(limits).join(", ") || "none of its own"],
    ["spent", describeSpent(limits.spent) || "nothing yet"],
  ]);
}
