import { type Agent, agentConfigSchema, agentSchema, runtimeProviderOf } from "@fairlead/protocol/agents";
import type { Command } from "commander";
import {
  type AgentConfigOptions,
  addAgentConfigOptions,
  givesConfig,
  readAgentConfig,
} from "../../agents/agent-config-input.ts";
import { AGENT_ARGUMENT, agentIdOf, agentPath } from "../../agents/agent-reference.ts";
import { agentText } from "../../agents/agent-tables.ts";
import { watchAgent } from "../../agents/agent-watch.ts";
import { addConnectorOption } from "../../agents/connector-option.ts";
import { CliError, UsageError } from "../../cli-error.ts";
import type { CommandContext } from "../../context.ts";
import { addUnsetVariableOption } from "../../input/variables.ts";
import { nodeIdOf } from "../../nodes/node-reference.ts";
import {
  addPlatformOptions,
  addProjectOption,
  type ClientOptions,
  type PlatformConnection,
  platformHost,
} from "../../platform/client-options.ts";
import { callJson, Refused } from "../../platform/http-client.ts";
import { print } from "../../terminal/output.ts";
import { addTimeoutOption, addWaitOptions, type BoundedWaitOptions, newestEvent, waits } from "../../terminal/watch.ts";

/** @throws CliError with the commands that set the secrets, if `ask` fails because secrets are missing */
async function tellingMissingSecrets<T>(agentId: string, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof Refused) || error.missingSecrets.length === 0) throw error;
    const commands = error.missingSecrets.map((name) => `\n  fairlead agent secret put ${agentId} ${name}`);
    const how = "Set each one, from stdin or with --from-file FILE:";
    throw new CliError(`${error.message}\n${how}${commands.join("")}`, { cause: error });
  }
}

interface UpdateOptions extends ClientOptions, AgentConfigOptions {
  readonly name?: string;
  readonly guest?: string;
  /** False: remove all. */
  readonly connector?: readonly string[] | false;
}

interface MoveOptions extends BoundedWaitOptions {
  readonly force?: boolean;
}

/** `fairlead agent start|stop|update|move AGENT`. */
export function addAgentLifeCommands(agent: Command, context: CommandContext): void {
  const command = (name: string): Command =>
    addProjectOption(addPlatformOptions(agent.command(name))).argument(...AGENT_ARGUMENT);
  addTimeoutOption(addWaitOptions(command("start"), "it is running and ready"))
    .description("start an agent on its node; lists any missing secrets")
    .addHelpText(
      "after",
      "\nExamples:\n  fairlead agent start bot\n  fairlead agent start bot --wait --timeout 10m --json",
    )
    .action((name: string, options: BoundedWaitOptions) => startAgent(context, name, options));
  addTimeoutOption(addWaitOptions(command("stop"), "it is stopped"))
    .description("stop an agent until it is started again; its token stops working immediately")
    .addHelpText("after", "\nExample:\n  fairlead agent stop bot")
    .action((name: string, options: BoundedWaitOptions) => stopAgent(context, name, options));
  const update = addUnsetVariableOption(addAgentConfigOptions(command("update")));
  addConnectorOption(update, "replace the agent's connectors with this one; repeatable")
    .description("change an agent; if it is running, its container is replaced, or rolled back on failure")
    .option("--name <name>", "new name")
    .option("--guest <guest>", "new preset or container image")
    .option("--no-connector", "remove all connectors")
    .addHelpText(
      "after",
      "\nExamples:\n  fairlead agent update digest --guest ghcr.io/example/digest:4\n" +
        "  fairlead agent update bot --connector http --connector slack --env TONE=dry --unset-env DEBUG\n" +
        "  fairlead agent config bot > bot.json && $EDITOR bot.json && fairlead agent update bot --config bot.json",
    )
    .action((name: string, options: UpdateOptions) => updateAgent(context, name, options));
  addTimeoutOption(addWaitOptions(command("move"), "it is running there"))
    .description("move an agent to another node; it starts there after the old node has stopped it")
    .argument("<node>", "the new node's ID, or its identifier in the project")
    .option("--force", "do not wait for an unreachable node; until it is back, the old copy may still act")
    .addHelpText("after", "\nExamples:\n  fairlead agent move bot cellar\n  fairlead agent move bot cellar --force")
    .action((name: string, node: string, options: MoveOptions) => moveAgent(context, { name, node }, options));
}

async function startAgent(context: CommandContext, name: string, options: BoundedWaitOptions): Promise<void> {
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

async function stopAgent(context: CommandContext, name: string, options: BoundedWaitOptions): Promise<void> {
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

async function updateAgent(context: CommandContext, name: string, options: UpdateOptions): Promise<void> {
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
    throw new UsageError("nothing to change: set an option such as --guest IMAGE or --config FILE");
  const call = { method: "PATCH", path: agentPath(id), body } as const;
  const agent = await tellingMissingSecrets(id, () => callJson(host, call, agentSchema));
  print(terminal, agent, { json: options.json, text: agentText });
  if (agent.runtime.nodeId !== "" && !options.json)
    terminal.note(
      `the container is replaced if the change requires it; \`fairlead agent events ${id}\` shows the progress`,
    );
}

async function changedConfig(
  { terminal }: CommandContext,
  { host, id }: { readonly host: PlatformConnection; readonly id: string },
  options: UpdateOptions,
): Promise<object> {
  const before = await callJson(host, { path: `${agentPath(id)}/config` }, agentConfigSchema);
  return readAgentConfig(terminal, options, before);
}

async function moveAgent(
  context: CommandContext,
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
    // A stopped agent has moved as soon as the request succeeds.
    until: ({ lifecycleState, runtime }: Agent) =>
      runtime.nodeId === nodeId ? lifecycleState === "running" : AT_REST.includes(lifecycleState),
    ends: UNLESS_STARTED,
  };
  await askAndWatch(context, asking, options);
}

type State = Agent["lifecycleState"];

/** Not running and not starting. */
const AT_REST: readonly State[] = ["created", "stopped"];

/** States that a starting agent reaches only when its node is out of service or another caller changed it. */
const UNLESS_STARTED: readonly State[] = ["failed", "stopped", "deleting"];

interface Asking {
  readonly host: PlatformConnection;
  readonly id: string;
  readonly ask: () => Promise<Agent>;
  readonly until: (agent: Agent) => boolean;
  readonly ends: readonly State[];
}

async function askAndWatch(context: CommandContext, asking: Asking, options: BoundedWaitOptions): Promise<void> {
  const { host, id, ask, until, ends } = asking;
  const after = await newestEvent(host, agentPath(id));
  const asked = await tellingMissingSecrets(id, ask);
  const { timeout: seconds } = options;
  const agent = waits(context.terminal, options)
    ? await watchAgent(context, host, { id, after, until, ends, seconds })
    : asked;
  print(context.terminal, agent, { json: options.json, text: agentText });
}
