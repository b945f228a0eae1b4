import type { Command } from "commander";
import { z } from "zod";
import {
  addPlatformOptions,
  addProjectOption,
  type ClientOptions,
  type Platform,
  platformHost,
} from "../client-options.ts";
import type { Context } from "../context.ts";
import { callJson } from "../http-client.ts";
import { print } from "../output.ts";
import { readSecretValue } from "../secret-value.ts";
import { formatTable } from "../table.ts";
import { visible } from "../visible.ts";

/** `put`, `list` and `delete` of secrets that belong to something: a node, an agent. */

/** A secret as people see it. */
interface Secret {
  readonly name: string;
  readonly version: number;
  readonly updatedAt: string;
  readonly stale: boolean;
}

/** What the secrets belong to. */
export interface SecretOwner {
  /** "node" or "agent": the command that `secret` is below. */
  readonly kind: string;
  readonly description: string;
  readonly argument: readonly [string, string];
  readonly schema: z.ZodType<Secret>;
  /** `/v1/…` of the owner that somebody named so. */
  path(host: Platform, name: string): Promise<string>;
  /** In the examples: an owner, and a secret of it that programs know. */
  readonly example: { readonly owner: string; readonly secret: string };
  /** Why some must be set again. */
  readonly staleSince: string;
}

interface PutOptions extends ClientOptions {
  readonly fromFile?: string;
}

export function addSecretCommands(parent: Command, context: Context, owner: SecretOwner): void {
  const secret = parent.command("secret").description(owner.description);
  const [name, what] = owner.argument;
  const command = (verb: string): Command =>
    addProjectOption(addPlatformOptions(secret.command(verb))).argument(name, what);
  const { owner: example, secret: exampleName } = owner.example;
  command("put")
    .description("set a secret to exactly what a file or standard input holds, its line breaks too")
    .argument("<name>")
    .option("--from-file <file>", "read the value from this file (default: standard input)")
    .addHelpText(
      "after",
      `\nExamples:\n  fairlead ${owner.kind} secret put ${example} tls.key --from-file tls.key\n` +
        `  printf %s "$TOKEN" | fairlead ${owner.kind} secret put ${example} ${exampleName}`,
    )
    .action((of: string, name: string, options: PutOptions) => putSecret(context, { owner, of, name }, options));
  command("list")
    .description(`list the secrets of ${article(owner.kind)}: names, versions, and which must be set again`)
    .addHelpText(
      "after",
      `\nExample:\n  fairlead ${owner.kind} secret list ${example} --json | jq '.secrets[] | select(.stale)'`,
    )
    .action((of: string, options: ClientOptions) => listSecrets(context, { owner, of }, options));
  command("delete")
    .description("delete a secret; what needs it runs on until it ends")
    .argument("<name>")
    .addHelpText("after", `\nExample:\n  fairlead ${owner.kind} secret delete ${example} ${exampleName}`)
    .action((of: string, name: string, options: ClientOptions) => deleteSecret(context, { owner, of, name }, options));
}

interface Owned {
  readonly owner: SecretOwner;
  /** As somebody named it. */
  readonly of: string;
}

interface Which extends Owned {
  readonly name: string;
}

async function putSecret(context: Context, which: Which, options: PutOptions): Promise<void> {
  const { terminal } = context;
  const value = await readSecretValue(terminal, options.fromFile);
  const host = platformHost(context, options);
  const call = { method: "PUT", path: await pathOf(host, which), body: { value } } as const;
  const secret = await callJson(host, call, which.owner.schema);
  print(terminal, secret, {
    json: options.json,
    text: ({ version }) => `set ${visible(which.name)}, version ${version}\n`,
  });
  if (value.endsWith("\n") && !options.json) terminal.note("its value ends with a line break, which is part of it");
}

async function listSecrets(context: Context, { owner, of }: Owned, options: ClientOptions): Promise<void> {
  const host = platformHost(context, options);
  const listSchema = z.object({ secrets: z.array(owner.schema) });
  const answer = await callJson(host, { path: `${await owner.path(host, of)}/secrets` }, listSchema);
  print(context.terminal, answer, { json: options.json, text: ({ secrets }) => secretTable(owner, secrets) });
  const stale = answer.secrets.filter((secret) => secret.stale).map(({ name }) => name);
  if (stale.length > 0 && !options.json) {
    context.terminal.note(`set again, since ${owner.staleSince}: ${stale.join(", ")}`);
  }
}

async function deleteSecret(context: Context, which: Which, options: ClientOptions): Promise<void> {
  const host = platformHost(context, options);
  const answer = await callJson(host, { method: "DELETE", path: await pathOf(host, which) }, z.object({}));
  print(context.terminal, answer, { json: options.json, text: () => `deleted ${visible(which.name)}\n` });
}

async function pathOf(host: Platform, { owner, of, name }: Which): Promise<string> {
  return `${await owner.path(host, of)}/secrets/${encodeURIComponent(name)}`;
}

function article(kind: string): string {
  return kind.startsWith("a") ? `an ${kind}` : `a ${kind}`;
}

function secretTable({ kind }: SecretOwner, secrets: readonly Secret[]): string {
  if (secrets.length === 0)
    return `no secrets yet: \`fairlead ${kind} secret put ${kind.toUpperCase()} NAME\` sets one\n`;
  const rows = secrets.map(({ name, version, updatedAt, stale }) => [
    name,
    String(version),
    updatedAt,
    stale ? "set again" : "good",
  ]);
  return formatTable(["NAME", "VERSION", "SET", "STATE"], rows);
}
