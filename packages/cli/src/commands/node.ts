import { type EngineConfig, engineConfigSchema, PRESET_NAMES } from "@fairlead/protocol/engine-config";
import { type Node, nodeSchema } from "@fairlead/protocol/resources";
import { type Command, Option } from "commander";
import { z } from "zod";
import { UsageError } from "../cli-error.ts";
import { addPlatformOptions, addProjectOption, type ClientOptions, platformHost } from "../client-options.ts";
import type { Context } from "../context.ts";
import { callJson } from "../http-client.ts";
import { addLimitOption, type ListOptions, listAll } from "../list-all.ts";
import { print } from "../output.ts";
import { formatTable } from "../table.ts";
import { addNodeConnectCommand } from "./node-connect.ts";
import { addNodeSecretCommands } from "./node-secret.ts";

const createdSchema = z.object({ node: nodeSchema });
const bootstrapTokenSchema = z.object({ token: z.string(), expiresAt: z.string() });

interface CreateOptions extends ClientOptions {
  readonly preset?: string;
  readonly image?: string;
}

export function addNodeCommands(program: Command, context: Context): void {
  const node = program.command("node").description("nodes: machines of a project that run engines");
  addLimitOption(addProjectOption(addPlatformOptions(node.command("list"))))
    .description("list a project's nodes with their status")
    .addHelpText("after", "\nExamples:\n  fairlead node list\n  fairlead node list --json | jq -r '.nodes[].status'")
    .action((options: ClientOptions & ListOptions) => listNodes(context, options));
  addPlatformOptions(node.command("get"))
    .description("show a node")
    .argument("<id>")
    .addHelpText("after", "\nExample:\n  fairlead node get $FAIRLEAD_NODE_ID --json")
    .action((id: string, options: ClientOptions) => getNode(context, id, options));
  addProjectOption(addPlatformOptions(node.command("create")))
    .description("add a machine that you have to a project")
    .argument("<name>")
    .addOption(new Option("--preset <name>", "engine preset").choices(PRESET_NAMES))
    .option("--image <reference>", "the engine's container image")
    .addHelpText("after", "\nExample:\n  fairlead node create attic --preset fairlead-demo")
    .action((name: string, options: CreateOptions) => createNode(context, name, options));
  addPlatformOptions(node.command("bootstrap-token"))
    .description("make the single-use token that a daemon enrols with")
    .argument("<id>")
    .addHelpText("after", "\nExample:\n  fairlead node bootstrap-token $FAIRLEAD_NODE_ID > token && chmod 600 token")
    .action((id: string, options: ClientOptions) => createBootstrapToken(context, id, options));
  addNodeConnectCommand(node, context);
  addNodeSecretCommands(node, context);
}

async function listNodes(context: Context, options: ClientOptions & ListOptions): Promise<void> {
  const host = platformHost(context, options);
  const query = { projectId: host.projectId() };
  const nodes = await listAll(host, { path: "/v1/nodes", field: "nodes", item: nodeSchema, query }, options);
  print(context.terminal, { nodes }, { json: options.json, text: (answer) => nodeTable(answer.nodes) });
}

async function getNode(context: Context, id: string, options: ClientOptions): Promise<void> {
  const host = platformHost(context, options);
  const node = await callJson(host, { path: `/v1/nodes/${encodeURIComponent(id)}` }, nodeSchema);
  print(context.terminal, node, { json: options.json, text: (answer) => nodeTable([answer]) });
}

async function createNode(context: Context, name: string, options: CreateOptions): Promise<void> {
  const host = platformHost(context, options);
  const body = { projectId: host.projectId(), planId: "byo", name, ...engineConfigFrom(options) };
  const call = { method: "POST", path: "/v1/nodes", body, idempotencyKey: context.ids.next("request") } as const;
  const answer = await callJson(host, call, createdSchema);
  print(context.terminal, answer, { json: options.json, text: (created) => nodeTable([created.node]) });
}

function engineConfigFrom({ preset, image }: CreateOptions): { engineConfig?: EngineConfig } {
  if (preset === undefined && image === undefined) return {};
  const parsed = engineConfigSchema.safeParse({ preset, image });
  if (!parsed.success) throw new UsageError(parsed.error.issues.map((issue) => issue.message).join("\n"));
  return { engineConfig: parsed.data };
}

async function createBootstrapToken(context: Context, id: string, options: ClientOptions): Promise<void> {
  const host = platformHost(context, options);
  const call = { method: "POST", path: `/v1/nodes/${encodeURIComponent(id)}/bootstrap-tokens`, body: {} } as const;
  const answer = await callJson(host, call, bootstrapTokenSchema);
  print(context.terminal, answer, { json: options.json, text: ({ token }) => `${token}\n` });
  if (!options.json) context.terminal.note(`valid until ${answer.expiresAt}, for one daemon`);
}

function nodeTable(nodes: readonly Node[]): string {
  if (nodes.length === 0) return "no nodes yet: `fairlead node create NAME --preset fairlead-demo` makes one\n";
  const rows = nodes.map((node) => [node.id, node.identifier, node.status, node.operatingSystem, node.statusMessage]);
  return formatTable(["ID", "IDENTIFIER", "STATUS", "SYSTEM", "MESSAGE"], rows);
}
