import { type Agent, agentConfigSchema, agentSchema, runtimeProviderOf } from "@fairlead/protocol/agents";
import type { Command } from "commander";
import {
  type AgentConfigOptions,
  addAgentConfigOptions,
  givesConfig,
  readAgentConfig,
} from "../agents/agent-config-input.ts";
import { AGENT_ARGUMENT, agentIdOf, agentPath } from "../agents/agent-reference.ts";
import { agentText } from "../agents/agent-tables.ts";
import { watchAgent } from "../agents/agent-watch.ts";
import { addConnectorOption } from "../agents/connector-option.ts";
import { tellingMissingSecrets } from "../agents/missing-secrets.ts";
import { UsageError } from "../cli-error.ts";
import {
  addPlatformOptions,
  addProjectOption,
  type ClientOptions,
  type Platform,
  platformHost,
} from "../client-options.ts";
import type { Context } from "../context.ts";
import { callJson } from "../http-client.ts";
import { nodeIdOf } from "../nodes/node-reference.ts";
import { print } from "../output.ts";
import { addUnsetVariableOption } from "../variables.ts";
import { addTimeoutOption, addWaitOptions, type BoundedWaitOptions, newestEvent, waits } from "../watch.ts";

interface UpdateOptions extends ClientOptions, AgentConfigOptions {
  readonly name?: string;
  readonly guest?: string;
  /** False: none any more. */
  readonly connector?: readonly string[] | false;
}

interface MoveOptions extends BoundedWaitOptions {
  readonly force?: boolean;
}

/** `fairlead agent start|stop|update|move AGENT`. */
export function addAgentLifeCommands(agent: Command, context: Context): void {
  const command = (name: string): Command =>
    addProjectOption(addPlatformOptions(agent.command(name))).argument(...AGENT_ARGUMENT);
  addTimeoutOption(addWaitOptions(command("start"), "it runs and is ready"))
    .description("run an agent on its node; names the secrets that it lacks")
    .addHelpText(
      "after",
      "\nExamples:\n  fairlead agent start bot\n  fairlead agent start bot --wait --timeout 10m --json",
    )
    .action((name: string, options: BoundedWaitOptions) => startAgent(context, name, options));
  addTimeoutOption(addWaitOptions(command("stop"), "it is stopped"))
    .description("stop an agent until somebody starts it; its token is void at once")
    .addHelpText("after", "\nExample:\n  fairlead agent stop bot")
    .action((name: string, options: BoundedWaitOptions) => stopAgent(context, name, options));
  const update = addUnsetVariableOption(addAgentConfigOptions(command("update")));
  addConnectorOption(update, "these connectors instead; repeat it")
    .description("change an agent; where it runs, a new container takes over or is rolled back")
    .option("--name <name>", "another name")
    .option("--guest <guest>", "another preset or container image")
    .option("--no-connector", "no connectors any more")
    .addHelpText(
      "after",
      "\nExamples:\n  fairlead agent update digest --guest ghcr.io/example/digest:4\n" +
        "  fairlead agent update bot --connector http --connector slack --env TONE=dry --unset-env DEBUG\n" +
        "  fairlead agent config bot > bot.json && $EDITOR bot.json && fairlead agent update bot --config bot.json",
    )
    .action((name: string, options: UpdateOptions) => updateAgent(context, name, options));
  addTimeoutOption(addWaitOptions(command("move"), "it runs there"))
    .description("give an agent another node; it starts there once the old one has stopped it")
    .argument("<node>", "the new node's id, or its identifier in the project")
    .option("--force", "do not wait for a node that does not answer: the old copy may run there until the node is back")
    .addHelpText("after", "\nExamples:\n  fairlead agent move bot cellar\n  fairlead agent move bot cellar --force")
    .action((name: string, node: string, options: MoveOptions) => moveAgent(context, { name, node }, options));
}

async function startAgent(context: Context, name: string, options: BoundedWaitOptions): Promise<void> {
  const host = platformHost(context, options);
  const id = await agentIdOf(host, name);
  const asking = {
    host,
    id,
    ask: () => callJson(host, { method: "POST", path: `${agentPath(id)}:start`, body: {} }, agentSchema),
    until: ({ lifecycleState }: Agent) => lifecycleState === "running",
    ends: UNLESS_STARTED,
  };
  await askAndWatch(context, asking, options);
}

async function stopAgent(context: Context, name: string, options: BoundedWaitOptions): Promise<void> {
  const host = platformHost(context, options);
  const id = await agentIdOf(host, name);
  const asking = {
    host,
    id,
    ask: () => callJson(host, { method: "POST", path: `${agentPath(id)}:stop`, body: {} }, agentSchema),
    until: ({ lifecycleState }: Agent) => lifecycleState === "stopped" || lifecycleState === "created",
    ends: UNLESS_STARTED.filter((state) => state !== "stopped"),
  };
  await askAndWatch(context, asking, options);
}

async function updateAgent(context: Context, name: string, options: UpdateOptions): Promise<void> {
  const { terminal } = context;
  const host = platformHost(context, options);
  const id = await agentIdOf(host, name);
  const body = {
    ...(options.name === undefined ? {} : { name: options.name }),
    ...(options.guest === undefined ? {} : { guest: options.guest }),
    ...(options.connector === undefined ? {} : { connectorSlugs: options.connector || [] }),
    ...(givesConfig(options) ? { config: await changedConfig(context, { host, id }, options) } : {}),
  };
  if (Object.keys(body).length === 0)
    throw new UsageError("say what to change, such as --guest IMAGE or --config FILE");
  const call = { method: "PATCH", path: agentPath(id), body } as const;
  const agent = await tellingMissingSecrets(id, () => callJson(host, call, agentSchema));
  print(terminal, agent, { json: options.json, text: agentText });
  if (agent.runtime.nodeId !== "" && !options.json)
    terminal.note(`what runs is replaced where it has to be: \`fairlead agent events ${id}\` tells how it goes`);
}

async function changedConfig(
  { terminal }: Context,
  { host, id }: { readonly host: Platform; readonly id: string },
  options: UpdateOptions,
): Promise<object> {
  const before = await callJson(host, { path: `${agentPath(id)}/config` }, agentConfigSchema);
  return readAgentConfig(terminal, options, before);
}

async function moveAgent(
  context: Context,
  { name, node }: { readonly name: string; readonly node: string },
  options: MoveOptions,
): Promise<void> {
  const host = platformHost(context, options);
  const id = await agentIdOf(host, name);
  const nodeId = await nodeIdOf(host, node);
  const body = { runtimeProvider: runtimeProviderOf(nodeId), ...(options.force ? { force: true } : {}) };
  const asking = {
    host,
    id,
    ask: () => callJson(host, { method: "PATCH", path: agentPath(id), body }, agentSchema),
    // One that is not to run has moved as soon as it is asked.
    until: ({ lifecycleState, runtime }: Agent) =>
      runtime.nodeId === nodeId ? lifecycleState === "running" : AT_REST.includes(lifecycleState),
    ends: UNLESS_STARTED,
  };
  await askAndWatch(context, asking, options);
}

type State = Agent["lifecycleState"];

/** Nothing of it runs, nor is it about to. */
const AT_REST: readonly State[] = ["created", "stopped"];

/** An agent that is to run comes into these by no doing of its own: its node is out of service, or somebody else was at it. */
const UNLESS_STARTED: readonly State[] = ["failed", "stopped", "deleting"];

interface Asking {
  readonly host: Platform;
  readonly id: string;
  readonly ask: () => Promise<Agent>;
  readonly until: (agent: Agent) => boolean;
  readonly ends: readonly State[];
}

async function askAndWatch(context: Context, asking: Asking, options: BoundedWaitOptions): Promise<void> {
  const { host, id, ask, until, ends } = asking;
  const after = await newestEvent(host, agentPath(id));
  const asked = await tellingMissingSecrets(id, ask);
  const { timeout: seconds } = options;
  const agent = waits(context.terminal, options)
    ? await watchAgent(context, host, { id, after, until, ends, seconds })
    : asked;
  print(context.terminal, agent, { json: options.json, text: agentText });
}
