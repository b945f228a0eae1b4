import { parseBootstrapToken } from "@fairlead/protocol/enrollment";
import { type Node, nodeSchema } from "@fairlead/protocol/resources";
import type { Command } from "commander";
import { z } from "zod";
import { addPlatformOptions, addProjectOption, type ClientOptions, platformHost } from "../client-options.ts";
import type { Context } from "../context.ts";
import { callJson } from "../http-client.ts";
import { addLimitOption, type ListOptions, listAll } from "../list-all.ts";
import { addEngineOptions, type EngineOptions, readEngineConfig } from "../nodes/engine-config-input.ts";
import { NODE_ARGUMENT, nodeIdOf, nodePath } from "../nodes/node-reference.ts";
import { BYO, nodeTable, nodeText } from "../nodes/node-tables.ts";
import { isUpToDate, watchNode } from "../nodes/node-watch.ts";
import {
  orTokenAdvice,
  PROVIDER_TOKEN_OPTION,
  type ProviderTokenOptions,
  readProviderToken,
} from "../nodes/provider-token-input.ts";
import { print } from "../output.ts";
import { type WaitOptions, waits } from "../watch.ts";
import { addNodeConnectCommand } from "./node-connect.ts";
import { addNodeDeleteCommand } from "./node-delete.ts";
import { addNodeEventsCommand } from "./node-events.ts";
import { addNodeLifeCommands } from "./node-life.ts";
import { addNodeLogsCommand } from "./node-logs.ts";
import { addNodeSecretCommands } from "./node-secret.ts";
import { addNodeSweepCommand } from "./node-sweep.ts";
import { addNodeUpdateDaemonCommand } from "./node-update-daemon.ts";
import { addNodeVersionsCommand } from "./node-versions.ts";

const createdSchema = z.object({ node: nodeSchema });
const bootstrapTokenSchema = z.object({ token: z.string(), expiresAt: z.string() });

interface CreateOptions extends WaitOptions, EngineOptions, ProviderTokenOptions {
  readonly plan: string;
  readonly location?: string;
}

export function addNodeCommands(program: Command, context: Context): void {
  const node = program.command("node").description("nodes: machines of a project that run engines");
  addCollectionCommands(node, context);
  const command = (name: string): Command =>
    addProjectOption(addPlatformOptions(node.command(name))).argument(...NODE_ARGUMENT);
  command("get")
    .description("show a node: its status and why, what runs on it, what its machine lacks")
    .addHelpText("after", "\nExamples:\n  fairlead node get attic\n  fairlead node get $FAIRLEAD_NODE_ID --json")
    .action((name: string, options: ClientOptions) => getNode(context, name, options));
  addNodeLifeCommands(node, context);
  addNodeLogsCommand(node, context);
  addNodeEventsCommand(node, context);
  addNodeVersionsCommand(node, context);
  addNodeUpdateDaemonCommand(node, context);
  addNodeSweepCommand(node, context);
  command("bootstrap-token")
    .description("make the single-use token that a daemon enrols with")
    .addHelpText("after", "\nExample:\n  fairlead node bootstrap-token attic > token && chmod 600 token")
    .action((name: string, options: ClientOptions) => createBootstrapToken(context, name, options));
  addNodeDeleteCommand(node, context);
  addNodeConnectCommand(node, context);
  addNodeSecretCommands(node, context);
}

function addCollectionCommands(node: Command, context: Context): void {
  addLimitOption(addProjectOption(addPlatformOptions(node.command("list"))))
    .description("list a project's nodes with their status")
    .addHelpText("after", "\nExamples:\n  fairlead node list\n  fairlead node list --json | jq -r '.nodes[].status'")
    .action((options: ClientOptions & ListOptions) => listNodes(context, options));
  const create = addEngineOptions(addProjectOption(addPlatformOptions(node.command("create"))));
  create
    .description("add a machine that you have to a project, or rent one for it")
    .argument("<name>")
    .option("--plan <id>", "the machine to rent, one of `fairlead plans`; byo: one that you have", BYO)
    .option(
      "--location <names>",
      "where to rent it; several with commas between are tried in order; any: every other place",
    )
    .option(...PROVIDER_TOKEN_OPTION)
    .option("--wait", "show what the node does until it is active (default at a terminal where a machine is rented)")
    .option("--no-wait", "answer at once")
    .addHelpText(
      "after",
      "\nExamples:\n  fairlead node create attic --preset fairlead-demo\n" +
        "  fairlead node create rack-1 --engine-config engine.yaml\n  fairlead node create lab --preset ollama --env OLLAMA_KEEP_ALIVE=1h --wait\n" +
        "  fairlead node create rented --plan hetzner:cx33 --location fsn1,nbg1 --provider-token-file token --preset fairlead-demo",
    )
    .action((name: string, options: CreateOptions) => createNode(context, name, options));
}

async function listNodes(context: Context, options: ClientOptions & ListOptions): Promise<void> {
  const host = platformHost(context, options);
  const query = { projectId: host.projectId() };
  const nodes = await listAll(host, { path: "/v1/nodes", field: "nodes", item: nodeSchema, query }, options);
  print(context.terminal, { nodes }, { json: options.json, text: (answer) => nodeTable(answer.nodes) });
}

async function getNode(context: Context, name: string, options: ClientOptions): Promise<void> {
  const host = platformHost(context, options);
  const node = await callJson(host, { path: nodePath(await nodeIdOf(host, name)) }, nodeSchema);
  print(context.terminal, node, { json: options.json, text: nodeText });
}

async function createNode(context: Context, name: string, options: CreateOptions): Promise<void> {
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

function sayHowToInstall({ terminal }: Context, url: string, { id }: Node): void {
  terminal.note(
    `next: \`fairlead node bootstrap-token ${id}\` makes a token; with it, on the machine itself, as root (docs/install.md):\n` +
      `  ${installCommand(url)}`,
  );
}

/** The token goes into a variable of the shell: an argument could be read by everybody on the machine. */
function installCommand(url: string): string {
  return `curl -fsSL ${url}/install.sh | FAIRLEAD_BOOTSTRAP_TOKEN=<token> sh`;
}

async function createBootstrapToken(context: Context, name: string, options: ClientOptions): Promise<void> {
  const host = platformHost(context, options);
  const path = `${nodePath(await nodeIdOf(host, name))}/bootstrap-tokens`;
  const answer = await callJson(host, { method: "POST", path, body: {} }, bootstrapTokenSchema);
  print(context.terminal, answer, { json: options.json, text: ({ token }) => `${token}\n` });
  if (options.json) return;
  const url = parseBootstrapToken(answer.token)?.url ?? host.url;
  context.terminal.note(
    `valid until ${answer.expiresAt}, for one daemon; on its machine, as root: ${installCommand(url)}`,
  );
}
