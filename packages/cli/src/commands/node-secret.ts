import { readFileSync } from "node:fs";
import { type NodeSecret, nodeSecretSchema } from "@fairlead/protocol/secrets";
import type { Command } from "commander";
import { z } from "zod";
import { CliError } from "../cli-error.ts";
import {
  addPlatformOptions,
  addProjectOption,
  type ClientOptions,
  type Platform,
  platformHost,
} from "../client-options.ts";
import type { Context } from "../context.ts";
import { callJson } from "../http-client.ts";
import { NODE_ARGUMENT, nodeIdOf, nodePath } from "../nodes/node-reference.ts";
import { print } from "../output.ts";
import { formatTable } from "../table.ts";
import type { Terminal } from "../terminal.ts";
import { visible } from "../visible.ts";

interface PutOptions extends ClientOptions {
  readonly fromFile?: string;
}

const listSchema = z.object({ secrets: z.array(nodeSecretSchema) });

export function addNodeSecretCommands(node: Command, context: Context): void {
  const secret = node.command("secret").description("secrets of a node, for its engine; no command shows a value");
  const command = (name: string): Command =>
    addProjectOption(addPlatformOptions(secret.command(name))).argument(...NODE_ARGUMENT);
  command("put")
    .description("set a secret to exactly what a file or standard input holds, its line breaks too")
    .argument("<name>")
    .option("--from-file <file>", "read the value from this file (default: standard input)")
    .addHelpText(
      "after",
      "\nExamples:\n  fairlead node secret put $FAIRLEAD_NODE_ID tls.key --from-file tls.key\n" +
        '  printf %s "$TOKEN" | fairlead node secret put $FAIRLEAD_NODE_ID HF_TOKEN',
    )
    .action((node: string, name: string, options: PutOptions) => putSecret(context, { node, name }, options));
  command("list")
    .description("list a node's secrets: names, versions, and which must be set again")
    .addHelpText(
      "after",
      "\nExample:\n  fairlead node secret list $FAIRLEAD_NODE_ID --json | jq '.secrets[] | select(.stale)'",
    )
    .action((node: string, options: ClientOptions) => listSecrets(context, node, options));
  command("delete")
    .description("delete a secret; what needs it runs on until it ends")
    .argument("<name>")
    .addHelpText("after", "\nExample:\n  fairlead node secret delete $FAIRLEAD_NODE_ID HF_TOKEN")
    .action((node: string, name: string, options: ClientOptions) => deleteSecret(context, { node, name }, options));
}

interface Which {
  /** As somebody named it. */
  readonly node: string;
  readonly name: string;
}

async function putSecret(context: Context, which: Which, options: PutOptions): Promise<void> {
  const { terminal } = context;
  const value = await valueFrom(terminal, options.fromFile);
  const host = platformHost(context, options);
  const secret = await callJson(
    host,
    { method: "PUT", path: await pathOf(host, which), body: { value } },
    nodeSecretSchema,
  );
  print(terminal, secret, {
    json: options.json,
    text: ({ version }) => `set ${visible(which.name)}, version ${version}\n`,
  });
  if (value.endsWith("\n") && !options.json) terminal.note("its value ends with a line break, which is part of it");
}

async function listSecrets(context: Context, node: string, options: ClientOptions): Promise<void> {
  const host = platformHost(context, options);
  const answer = await callJson(host, { path: `${nodePath(await nodeIdOf(host, node))}/secrets` }, listSchema);
  print(context.terminal, answer, { json: options.json, text: ({ secrets }) => secretTable(secrets) });
  const stale = answer.secrets.filter((secret) => secret.stale).map(({ name }) => name);
  if (stale.length > 0 && !options.json) {
    context.terminal.note(`set again, since the node has a new key: ${stale.join(", ")}`);
  }
}

async function deleteSecret(context: Context, which: Which, options: ClientOptions): Promise<void> {
  const host = platformHost(context, options);
  const answer = await callJson(host, { method: "DELETE", path: await pathOf(host, which) }, z.object({}));
  print(context.terminal, answer, { json: options.json, text: () => `deleted ${visible(which.name)}\n` });
}

async function pathOf(host: Platform, { node, name }: Which): Promise<string> {
  return `${nodePath(await nodeIdOf(host, node))}/secrets/${encodeURIComponent(name)}`;
}

/** Never an argument: other users of the machine can read those. */
async function valueFrom(terminal: Terminal, file: string | undefined): Promise<string> {
  if (file === undefined && terminal.inputIsInteractive) terminal.note("type the value, then Ctrl-D");
  const value = file === undefined ? await terminal.readInput() : readExactly(file);
  if (value === "") throw new CliError(`${file ?? "Standard input"} is empty.`);
  // What decoding puts in the place of bytes that are no text.
  if (value.includes("\uFFFD")) throw notText(file ?? "Standard input");
  return value;
}

function readExactly(file: string): string {
  let bytes: Buffer;
  try {
    bytes = readFileSync(file);
  } catch (cause) {
    throw new CliError(`${file} cannot be read.`, { cause });
  }
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
}

function notText(source: string): CliError {
  return new CliError(`${source} is no UTF-8 text. Encode it, say with base64, and let the engine decode it.`);
}

function secretTable(secrets: readonly NodeSecret[]): string {
  if (secrets.length === 0) return "no secrets yet: `fairlead node secret put NODE NAME` sets one\n";
  const rows = secrets.map(({ name, version, updatedAt, stale }) => [
    name,
    String(version),
    updatedAt,
    stale ? "set again" : "good",
  ]);
  return formatTable(["NAME", "VERSION", "SET", "STATE"], rows);
}
