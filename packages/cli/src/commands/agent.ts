import { type Agent, agentConfigSchema, agentSchema, runtimeProviderOf } from "@fairlead/protocol/agents";
import type { Command } from "commander";
import { z } from "zod";
import {
  type AgentConfigOptions,
  addAgentConfigOptions,
  givesConfig,
  readAgentConfig,
} from "../agents/agent-config-input.ts";
import { AGENT_ARGUMENT, agentIdOf, agentPath, agentPathOf } from "../agents/agent-reference.ts";
import { agentTable, agentText } from "../agents/agent-tables.ts";
import { addConnectorOption } from "../agents/connector-option.ts";
import { addPlatformOptions, addProjectOption, type ClientOptions, platformHost } from "../client-options.ts";
import { type ConfirmOptions, confirmName, confirmOption } from "../confirm-name.ts";
import type { Context } from "../context.ts";
import { callJson } from "../http-client.ts";
import { addLimitOption, type ListOptions, listAll } from "../list-all.ts";
import { nodeIdOf } from "../nodes/node-reference.ts";
import { print } from "../output.ts";
import { visible } from "../visible.ts";
import { addAgentLifeCommands } from "./agent-life.ts";
import { addAgentLimitCommands } from "./agent-limits.ts";
import { addAgentLookCommands } from "./agent-look.ts";
import { addAgentSecretCommands } from "./agent-secret.ts";
import { addLimitOptions, type LimitOptions, limitFields } from "./key-limits.ts";

interface CreateOptions extends ClientOptions, AgentConfigOptions, LimitOptions {
  readonly guest: string;
  readonly node: string;
  readonly connector?: readonly string[];
}

interface DeleteOptions extends ClientOptions, ConfirmOptions {
  readonly force?: boolean;
}

const createdSchema = z.object({ agent: agentSchema });

export function addAgentCommands(program: Command, context: Context): void {
  const agent = program.command("agent").description("agents: programs that run on a project's nodes with its access");
  addCreateCommand(agent, context);
  addLimitOption(addProjectOption(addPlatformOptions(agent.command("list"))))
    .description("list a project's agents with their states")
    .addHelpText(
      "after",
      "\nExamples:\n  fairlead agent list\n  fairlead agent list --json | jq -r '.agents[].lifecycleState'",
    )
    .action((options: ClientOptions & ListOptions) => listAgents(context, options));
  const command = (name: string): Command =>
    addProjectOption(addPlatformOptions(agent.command(name))).argument(...AGENT_ARGUMENT);
  command("get")
    .description("show an agent: its state and why, where it runs and what")
    .addHelpText("after", "\nExamples:\n  fairlead agent get bot\n  fairlead agent get bot --json | jq .runtime")
    .action((name: string, options: ClientOptions) => getAgent(context, name, options));
  command("config")
    .description("show an agent's config as JSON, as `--config` takes it")
    .addHelpText("after", "\nExample:\n  fairlead agent config bot > bot.json")
    .action((name: string, options: ClientOptions) => showConfig(context, name, options));
  addAgentLifeCommands(agent, context);
  command("delete")
    .description("stop an agent and forget it with its secrets, limits and history")
    .option(...confirmOption("agent"))
    .option("--force", "do not wait for a node that does not answer: it may run there until the node is back")
    .addHelpText("after", "\nExamples:\n  fairlead agent delete bot\n  fairlead agent delete bot --confirm bot")
    .action((name: string, options: DeleteOptions) => deleteAgent(context, name, options));
  addAgentLookCommands(agent, context);
  addAgentLimitCommands(agent, context);
  addAgentSecretCommands(agent, context);
}

function addCreateCommand(agent: Command, context: Context): void {
  const create = addProjectOption(addPlatformOptions(agent.command("create")))
    .description("make an agent; it does not run before `fairlead agent start`")
    .argument("<name>")
    .requiredOption("--guest <guest>", "what runs: fairlead-demo-agent, openclaw, or a container image")
    .requiredOption("--node <node>", "where it runs: a node's id, or its identifier in the project");
  addConnectorOption(create, "one of `fairlead connector list`; repeat it");
  addLimitOptions(addAgentConfigOptions(create))
    .addHelpText(
      "after",
      "\nExamples:\n  fairlead agent create bot --guest fairlead-demo-agent --node attic --connector http\n" +
        "  fairlead agent create digest --guest ghcr.io/example/digest:3 --node attic --config digest.yaml --budget-daily 2",
    )
    .action((name: string, options: CreateOptions) => createAgent(context, name, options));
}

async function createAgent(context: Context, name: string, options: CreateOptions): Promise<void> {
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

async function listAgents(context: Context, options: ClientOptions & ListOptions): Promise<void> {
  const host = platformHost(context, options);
  const query = { projectId: host.projectId() };
  const agents = await listAll(host, { path: "/v1/agents", field: "agents", item: agentSchema, query }, options);
  print(context.terminal, { agents }, { json: options.json, text: (answer) => agentTable(answer.agents) });
}

async function getAgent(context: Context, name: string, options: ClientOptions): Promise<void> {
  const host = platformHost(context, options);
  const agent = await callJson(host, { path: await agentPathOf(host, name) }, agentSchema);
  print(context.terminal, agent, { json: options.json, text: agentText });
}

async function showConfig(context: Context, name: string, options: ClientOptions): Promise<void> {
  const host = platformHost(context, options);
  const config = await callJson(host, { path: `${await agentPathOf(host, name)}/config` }, agentConfigSchema);
  // It is data, for people too.
  print(context.terminal, config, { json: true, text: () => "" });
}

async function deleteAgent(context: Context, name: string, options: DeleteOptions): Promise<void> {
  const { terminal } = context;
  const host = platformHost(context, options);
  const id = await agentIdOf(host, name);
  const agent: Agent = await callJson(host, { path: agentPath(id) }, agentSchema);
  const condemned = { kind: "agent", name: agent.name, goesWithIt: "with its secrets, limits and history" };
  await confirmName(terminal, condemned, options);
  const path = `${agentPath(id)}${options.force ? "?force=true" : ""}`;
  const answer = await callJson(host, { method: "DELETE", path }, z.object({}));
  print(terminal, answer, { json: options.json, text: () => `deleting ${id} ${visible(agent.name)}\n` });
  if (!options.json) terminal.note("its token is void; it is gone once its node has taken it down");
}
