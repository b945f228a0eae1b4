import { parseBootstrapToken } from "@fairlead/protocol/enrollment";
import { type Node, nodeEventSchema, nodeSchema } from "@fairlead/protocol/resources";
import type { Command } from "commander";
import { z } from "zod";
import type { CommandContext } from "../../context.ts";
import { addEngineOptions, type EngineOptions, readEngineConfig } from "../../nodes/engine-config-input.ts";
import { NODE_ARGUMENT, nodeIdOf, nodePath } from "../../nodes/node-reference.ts";
import { BYO, nodeTable, nodeText } from "../../nodes/node-tables.ts";
import { isUpToDate, watchNode } from "../../nodes/node-watch.ts";
import {
  orTokenAdvice,
  PROVIDER_TOKEN_OPTION,
  type ProviderTokenOptions,
  readProviderToken,
} from "../../nodes/provider-token-input.ts";
import {
  addPlatformOptions,
  addProjectOption,
  type ClientOptions,
  platformHost,
} from "../../platform/client-options.ts";
import { callJson } from "../../platform/http-client.ts";
import { addHistoryOptions, type HistoryOptions, printHistory } from "../../terminal/history.ts";
import { addLimitOption, type ListOptions, listAll } from "../../terminal/list-all.ts";
import { addLogOptions, type LogLineOptions, printLogs } from "../../terminal/log-lines.ts";
import { print } from "../../terminal/output.ts";
import { type WaitOptions, waits } from "../../terminal/watch.ts";
import { addNodeConnectCommand } from "./node-connect.ts";
import { addNodeDeleteCommand } from "./node-delete.ts";
import { addNodeLifeCommands } from "./node-life.ts";
import { addNodeSecretCommands } from "./node-secret.ts";
import { addNodeSweepCommand } from "./node-sweep.ts";
import { addNodeUpdateDaemonCommand } from "./node-update-daemon.ts";
import { addNodeVersionsCommand } from "./node-versions.ts";

/** `fairlead node events NODE`. */
function addNodeEventsCommand(node: Command, context: CommandContext): void {
  addHistoryOptions(addProjectOption(addPlatformOptions(node.command("events"))))
    .description("show a node's events and their reasons, newest last")
    .argument(...NODE_ARGUMENT)
    .addHelpText(
      "after",
      "\nExamples:\n  fairlead node events local --since 1d\n" +
        "  fairlead node events local --kind workload_exited,workload_stopped,workload_started   # why did it restart?",
    )
    .action((name: string, options: HistoryOptions) => showEvents(context, name, options));
}

async function showEvents(context: CommandContext, name: string, options: HistoryOptions): Promise<void> {
  const host = platformHost(context, options);
  const path = `${nodePath(await nodeIdOf(host, name))}/events`;
  await printHistory(context, { host, path, item: nodeEventSchema, stateOf: ({ status }) => status }, options);
}

/** `fairlead node logs NODE`. */
function addNodeLogsCommand(node: Command, context: CommandContext): void {
  addLogOptions(addProjectOption(addPlatformOptions(node.command("logs"))))
    .description("show the logs of a node's engine")
    .argument(...NODE_ARGUMENT)
    .addHelpText(
      "after",
      "\nIncludes stdout and stderr. Requires the owner or admin role, because engines may log prompts.\n" +
        "\nExamples:\n  fairlead node logs local --tail 100\n  fairlead node logs local --follow --since 10m",
    )
    .action((name: string, options: LogLineOptions) => showLogs(context, name, options));
}

async function showLogs(context: CommandContext, name: string, options: LogLineOptions): Promise<void> {
  const host = platformHost(context, options);
  await printLogs(context, { host, path: `${nodePath(await nodeIdOf(host, name))}/logs` }, options);
}

const createdSchema = z.object({ node: nodeSchema });
const bootstrapTokenSchema = z.object({ token: z.string(), expiresAt: z.string() });

interface CreateOptions extends WaitOptions, EngineOptions, ProviderTokenOptions {
  readonly plan: string;
  readonly location?: string;
}

export function addNodeCommands(program: Command, context: CommandContext): void {
  const node = program.command("node").description("nodes: machines that run a project's engines and agents");
  addCollectionCommands(node, context);
  const command = (name: string): Command =>
    addProjectOption(addPlatformOptions(node.command(name))).argument(...NODE_ARGUMENT);
  command("get")
    .description("show a node: its status and reason, its workloads and machine problems")
    .addHelpText("after", "\nExamples:\n  fairlead node get local\n  fairlead node get $FAIRLEAD_NODE_ID --json")
    .action((name: string, options: ClientOptions) => getNode(context, name, options));
  addNodeLifeCommands(node, context);
  addNodeLogsCommand(node, context);
  addNodeEventsCommand(node, context);
  addNodeVersionsCommand(node, context);
  addNodeUpdateDaemonCommand(node, context);
  addNodeSweepCommand(node, context);
  command("bootstrap-token")
    .description("create a single-use token for enrolling a daemon")
    .addHelpText("after", "\nExample:\n  fairlead node bootstrap-token local > token && chmod 600 token")
    .action((name: string, options: ClientOptions) => createBootstrapToken(context, name, options));
  addNodeDeleteCommand(node, context);
  addNodeConnectCommand(node, context);
  addNodeSecretCommands(node, context);
}

function addCollectionCommands(node: Command, context: CommandContext): void {
  addLimitOption(addProjectOption(addPlatformOptions(node.command("list"))))
    .description("list a project's nodes and their status")
    .addHelpText("after", "\nExamples:\n  fairlead node list\n  fairlead node list --json | jq -r '.nodes[].status'")
    .action((options: ClientOptions & ListOptions) => listNodes(context, options));
  const create = addEngineOptions(addProjectOption(addPlatformOptions(node.command("create"))));
  create
    .description("add your own machine to a project, or rent one")
    .argument("<name>")
    .option("--plan <id>", "plan of the machine to rent, from `fairlead plans`; byo: your own machine", BYO)
    .option(
      "--location <names>",
      "where to rent it: comma-separated locations, tried in order; any: all remaining locations",
    )
    .option(...PROVIDER_TOKEN_OPTION)
    .option("--wait", "show progress until the node is active (default for rented machines, in a terminal)")
    .option("--no-wait", "return immediately")
    .addHelpText(
      "after",
      "\nExamples:\n  fairlead node create local --preset fairlead-demo\n" +
        "  fairlead node create rack-1 --engine-config engine.yaml\n  fairlead node create lab --preset ollama --env OLLAMA_KEEP_ALIVE=1h --wait\n" +
        "  fairlead node create rented --plan hetzner:cx33 --location fsn1,nbg1 --provider-token-file token --preset fairlead-demo",
    )
    .action((name: string, options: CreateOptions) => createNode(context, name, options));
}

async function listNodes(context: CommandContext, options: ClientOptions & ListOptions): Promise<void> {
  const host = platformHost(context, options);
  const query = { projectId: host.projectId() };
  const nodes = await listAll(host, { path: "/v1/nodes", field: "nodes", item: nodeSchema, query }, options);
  print(context.terminal, { nodes }, { json: options.json, text: (answer) => nodeTable(answer.nodes) });
}

async function getNode(context: CommandContext, name: string, options: ClientOptions): Promise<void> {
  const host = platformHost(context, options);
  const node = await callJson(host, { path: nodePath(await nodeIdOf(host, name)) }, nodeSchema);
  print(context.terminal, node, { json: options.json, text: nodeText });
}

async function createNode(context: CommandContext, name: string, options: CreateOptions): Promise<void> {
  const host = platformHost(context, options);
  const engineConfig = await readEngineConfig(context.terminal, options);
  const { plan: planId, location } = options;
  const rents = planId !== BYO;
  const providerToken = rents ? await readProviderToken(context, options) : undefined;
  const body = {
    projectId: host.projectId(),
    planId,
    name,
    ...(engineConfig === null ? {} : { engineConfig }),
    ...(location === undefined ? {} : { location }),
    ...(providerToken === undefined ? {} : { providerToken }),
  };
  const call = { method: "POST", path: "/v1/nodes", body, idempotencyKey: context.ids.next("request") } as const;
  const created = await orTokenAdvice({ ...options, token: providerToken }, callJson(host, call, createdSchema));
  if (!rents && (!options.json || options.wait)) sayHowToInstall(context, host.url, created.node);
  if (!(rents ? waits(context.terminal, options) : options.wait)) {
    print(context.terminal, created, { json: options.json, text: (answer) => nodeTable([answer.node]) });
    return;
  }
  const node = await watchNode(context, host, { id: created.node.id, after: "", until: isUpToDate });
  print(context.terminal, { node }, { json: options.json, text: (answer) => nodeText(answer.node) });
}

function sayHowToInstall({ terminal }: CommandContext, url: string, { id }: Node): void {
  terminal.note(
    `next: create a token with \`fairlead node bootstrap-token ${id}\`, then run on the machine, as root (docs/install.md):\n` +
      `  ${installCommand(url)}`,
  );
}

/** The token is passed in the environment: any local user can read arguments. */
function installCommand(url: string): string {
  return `curl -fsSL ${url}/install.sh | FAIRLEAD_BOOTSTRAP_TOKEN=<token> sh`;
}

async function createBootstrapToken(context: CommandContext, name: string, options: ClientOptions): Promise<void> {
  const host = platformHost(context, options);
  const path = `${nodePath(await nodeIdOf(host, name))}/bootstrap-tokens`;
  const answer = await callJson(host, { method: "POST", path, body: {} }, bootstrapTokenSchema);
  print(context.terminal, answer, { json: options.json, text: ({ token }) => `${token}\n` });
  if (options.json) return;
  const url = parseBootstrapToken(answer.token)?.url ?? host.url;
  context.terminal.note(
    `valid until ${answer.expiresAt}, can be used once. On the node, as root: ${installCommand(url)}`,
  );
}
