import {
  type Agent,
  agentConfigSchema,
  agentSchema,
  agentSecretSchema,
  runtimeProviderOf,
} from "@fairlead/protocol/agents";
import type { Command } from "commander";
import { z } from "zod";
import {
  type AgentConfigOptions,
  addAgentConfigOptions,
  givesConfig,
  readAgentConfig,
} from "../../agents/agent-config-input.ts";
import { AGENT_ARGUMENT, agentIdOf, agentPath, agentPathOf } from "../../agents/agent-reference.ts";
import { agentTable, agentText } from "../../agents/agent-tables.ts";
import { addConnectorOption } from "../../agents/connector-option.ts";
import type { CommandContext } from "../../context.ts";
import { nodeIdOf } from "../../nodes/node-reference.ts";
import {
  addPlatformOptions,
  addProjectOption,
  type ClientOptions,
  platformHost,
} from "../../platform/client-options.ts";
import { callJson } from "../../platform/http-client.ts";
import { type ConfirmOptions, confirmName, confirmOption } from "../../terminal/confirm-name.ts";
import { addLimitOption, type ListOptions, listAll } from "../../terminal/list-all.ts";
import { print } from "../../terminal/output.ts";
import { visible } from "../../terminal/visible.ts";
import { addLimitOptions, type LimitOptions, limitFields } from "../projects/key-limits.ts";
import { addSecretCommands } from "../secret-commands.ts";
import { addAgentLifeCommands } from "./agent-life.ts";
import { addAgentLimitCommands } from "./agent-limits.ts";
import { addAgentLookCommands } from "./agent-look.ts";

function addAgentSecretCommands(agent: Command, context: CommandContext): void {
  addSecretCommands(agent, context, {
    kind: "agent",
    description: "secrets of an agent and its connectors; values are never shown",
    argument: AGENT_ARGUMENT,
    schema: agentSecretSchema,
    path: agentPathOf,
    example: { owner: "bot", secret: "HTTP_CONNECTOR_TOKEN" },
    staleSince: "the agent moved or its node has a new key",
  });
}

interface CreateOptions extends ClientOptions, AgentConfigOptions, LimitOptions {
  readonly guest: string;
  readonly node: string;
  readonly connector?: readonly string[];
}

interface DeleteOptions extends ClientOptions, ConfirmOptions {
  readonly force?: boolean;
}

const createdSchema = z.object({ agent: agentSchema });

export function addAgentCommands(program: Command, context: CommandContext): void {
  const agent = program
    .command("agent")
    .description("agents: programs that run on a project's nodes and use its models");
  addCreateCommand(agent, context);
  addLimitOption(addProjectOption(addPlatformOptions(agent.command("list"))))
    .description("list a project's agents and their states")
    .addHelpText(
      "after",
      "\nExamples:\n  fairlead agent list\n  fairlead agent list --json | jq -r '.agents[].lifecycleState'",
    )
    .action((options: ClientOptions & ListOptions) => listAgents(context, options));
  const command = (name: string): Command =>
    addProjectOption(addPlatformOptions(agent.command(name))).argument(...AGENT_ARGUMENT);
  command("get")
    .description("show an agent: its state and reason, its node and image")
    .addHelpText("after", "\nExamples:\n  fairlead agent get bot\n  fairlead agent get bot --json | jq .runtime")
    .action((name: string, options: ClientOptions) => getAgent(context, name, options));
  command("config")
    .description("print an agent's config as JSON, in the format of `--config`")
    .addHelpText("after", "\nExample:\n  fairlead agent config bot > bot.json")
    .action((name: string, options: ClientOptions) => showConfig(context, name, options));
  addAgentLifeCommands(agent, context);
  command("delete")
    .description("stop an agent and delete it with its secrets, limits and events")
    .option(...confirmOption("agent"))
    .option(
      "--force",
      "do not wait for an unreachable node; the agent may still be running there until the node is back",
    )
    .addHelpText("after", "\nExamples:\n  fairlead agent delete bot\n  fairlead agent delete bot --confirm bot")
    .action((name: string, options: DeleteOptions) => deleteAgent(context, name, options));
  addAgentLookCommands(agent, context);
  addAgentLimitCommands(agent, context);
  addAgentSecretCommands(agent, context);
}

function addCreateCommand(agent: Command, context: CommandContext): void {
  const create = addProjectOption(addPlatformOptions(agent.command("create")))
    .description("create an agent; start it with `fairlead agent start`")
    .argument("<name>")
    .requiredOption("--guest <guest>", "what to run: fairlead-demo-agent, openclaw, or a container image")
    .requiredOption("--node <node>", "where to run it: a node's ID, or its identifier in the project");
  addConnectorOption(create, "a connector from `fairlead connector list`; repeatable");
  addLimitOptions(addAgentConfigOptions(create))
    .addHelpText(
      "after",
      "\nExamples:\n  fairlead agent create bot --guest fairlead-demo-agent --node local --connector http\n" +
        "  fairlead agent create digest --guest ghcr.io/example/digest:3 --node local --config digest.yaml --budget-daily 2",
    )
    .action((name: string, options: CreateOptions) => createAgent(context, name, options));
}

async function createAgent(context: CommandContext, name: string, options: CreateOptions): Promise<void> {
  const host = platformHost(context, options);
  const config = givesConfig(options) ? await readAgentConfig(context.terminal, options, {}) : undefined;
  const limits = limitFields(options);
  const body = {
    projectId: host.projectId(),
    name,
    guest: options.guest,
    runtimeProvider: runtimeProviderOf(await nodeIdOf(host, options.node)),
    ...(options.connector === undefined ? {} : { connectorSlugs: options.connector }),
    ...(config === undefined ? {} : { config }),
    ...(limits === undefined ? {} : { limits }),
  };
  const call = { method: "POST", path: "/v1/agents", body, idempotencyKey: context.ids.next("request") } as const;
  const created = await callJson(host, call, createdSchema);
  print(context.terminal, created, { json: options.json, text: (answer) => agentTable([answer.agent]) });
  if (!options.json) context.terminal.note(`next: \`fairlead agent start ${created.agent.id}\``);
}

async function listAgents(context: CommandContext, options: ClientOptions & ListOptions): Promise<void> {
  const host = platformHost(context, options);
  const query = { projectId: host.projectId() };
  const agents = await listAll(host, { path: "/v1/agents", field: "agents", item: agentSchema, query }, options);
  print(context.terminal, { agents }, { json: options.json, text: (answer) => agentTable(answer.agents) });
}

async function getAgent(context: CommandContext, name: string, options: ClientOptions): Promise<void> {
  const host = platformHost(context, options);
  const agent = await callJson(host, { path: await agentPathOf(host, name) }, agentSchema);
  print(context.terminal, agent, { json: options.json, text: agentText });
}

async function showConfig(context: CommandContext, name: string, options: ClientOptions): Promise<void> {
  const host = platformHost(context, options);
  const config = await callJson(host, { path: `${await agentPathOf(host, name)}/config` }, agentConfigSchema);
  // The config is data, so it is always printed as JSON.
  print(context.terminal, config, { json: true, text: () => "" });
}

async function deleteAgent(context: CommandContext, name: string, options: DeleteOptions): Promise<void> {
  const { terminal } = context;
  const host = platformHost(context, options);
  const id = await agentIdOf(host, name);
  const agent: Agent = await callJson(host, { path: agentPath(id) }, agentSchema);
  const condemned = { kind: "agent", name: agent.name, goesWithIt: "with its secrets, limits and events" };
  await confirmName(terminal, condemned, options);
  const path = `${agentPath(id)}${options.force ? "?force=true" : ""}`;
  const answer = await callJson(host, { method: "DELETE", path }, z.object({}));
  print(terminal, answer, { json: options.json, text: () => `deleting ${id} ${visible(agent.name)}\n` });
  if (!options.json) terminal.note("its token no longer works; the agent is deleted after its node has removed it");
}
