import { type AgentLimits, agentLimitsSchema } from "@fairlead/protocol/resources";
import type { Command } from "commander";
import { AGENT_ARGUMENT, agentPathOf } from "../../agents/agent-reference.ts";
import { UsageError } from "../../cli-error.ts";
import type { CommandContext } from "../../context.ts";
import {
  addPlatformOptions,
  addProjectOption,
  type ClientOptions,
  platformHost,
} from "../../platform/client-options.ts";
import { callJson } from "../../platform/http-client.ts";
import { factLines } from "../../terminal/fact-lines.ts";
import { print } from "../../terminal/output.ts";
import {
  addLimitOptions,
  describeLimits,
  describeSpent,
  type LimitOptions,
  limitFields,
} from "../projects/key-limits.ts";

interface SetOptions extends ClientOptions, LimitOptions {}

/** `fairlead agent limits show|set AGENT`. */
export function addAgentLimitCommands(agent: Command, context: CommandContext): void {
  const limits = agent.command("limits").description("limits on what an agent can call and spend");
  const command = (name: string): Command =>
    addProjectOption(addPlatformOptions(limits.command(name))).argument(...AGENT_ARGUMENT);
  command("show")
    .description("show an agent's limits and spend")
    .addHelpText("after", "\nExample:\n  fairlead agent limits show bot")
    .action((name: string, options: ClientOptions) => showLimits(context, name, options));
  addLimitOptions(command("set"))
    .description(
      "change an agent's limits; omitted limits are unchanged. Takes effect within one second, without a restart",
    )
    .addHelpText(
      "after",
      "\nExamples:\n  fairlead agent limits set bot --budget-daily 2 --model 'local/*'\n" +
        "  fairlead agent limits set bot --budget-daily none --all-models",
    )
    .action((name: string, options: SetOptions) => setLimits(context, name, options));
}

async function showLimits(context: CommandContext, name: string, options: ClientOptions): Promise<void> {
  const host = platformHost(context, options);
  const limits = await callJson(host, { path: `${await agentPathOf(host, name)}/limits` }, agentLimitsSchema);
  print(context.terminal, limits, { json: options.json, text: limitsText });
}

async function setLimits(context: CommandContext, name: string, options: SetOptions): Promise<void> {
  const host = platformHost(context, options);
  const body = limitFields(options);
  if (body === undefined) throw new UsageError("nothing to change: set a limit such as --budget-daily 2");
  const call = { method: "PATCH", path: `${await agentPathOf(host, name)}/limits`, body } as const;
  const limits = await callJson(host, call, agentLimitsSchema);
  print(context.terminal, limits, { json: options.json, text: limitsText });
}

function limitsText(limits: AgentLimits): string {
  return factLines([
    ["limits", describeLimits(limits).join(", ") || "none"],
    ["spent", describeSpent(limits.spent) || "nothing"],
  ]);
}
