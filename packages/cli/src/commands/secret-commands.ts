import type { Command } from "commander";
import { z } from "zod";
import type { CommandContext } from "../context.ts";
import { readSecretValue } from "../input/secret-value.ts";
import {
  addPlatformOptions,
  addProjectOption,
  type ClientOptions,
  type PlatformConnection,
  platformHost,
} from "../platform/client-options.ts";
import { callJson } from "../platform/http-client.ts";
import { print } from "../terminal/output.ts";
import { formatTable } from "../terminal/table.ts";
import { visible } from "../terminal/visible.ts";

/** `put`, `list` and `delete` of secrets that belong to something: a node, an agent. */

/** The listed fields of a secret. */
interface Secret {
  readonly name: string;
  readonly version: number;
  readonly updatedAt: string;
  readonly stale: boolean;
}

/** The kind of resource that owns the secrets. */
export interface SecretCommandOwner {
  /** "node" or "agent": the command that `secret` is below. */
  readonly kind: string;
  readonly description: string;
  readonly argument: readonly [string, string];
  readonly schema: z.ZodType<Secret>;
  /** The API path of the owner with this name or ID. */
  path(host: PlatformConnection, name: string): Promise<string>;
  /** Names used in the help examples. */
  readonly example: { readonly owner: string; readonly secret: string };
  /** Why stale secrets must be set again. */
  readonly staleSince: string;
}

interface PutOptions extends ClientOptions {
  readonly fromFile?: string;
}

export function addSecretCommands(parent: Command, context: CommandContext, owner: SecretCommandOwner): void {
  const secret = parent.command("secret").description(owner.description);
  const [name, what] = owner.argument;
  const command = (verb: string): Command =>
    addProjectOption(addPlatformOptions(secret.command(verb))).argument(name, what);
  const { owner: example, secret: exampleName } = owner.example;
  command("put")
    .description("set a secret to the exact contents of a file or stdin, including line breaks")
    .argument("<name>")
    .option("--from-file <file>", "read the value from this file (default: stdin)")
    .addHelpText(
      "after",
      `\nExamples:\n  fairlead ${owner.kind} secret put ${example} tls.key --from-file tls.key\n` +
        `  printf %s "$TOKEN" | fairlead ${owner.kind} secret put ${example} ${exampleName}`,
    )
    .action((of: string, name: string, options: PutOptions) => putSecret(context, { owner, of, name }, options));
  command("list")
    .description(`list the secrets of ${article(owner.kind)}: names, versions, and whether they must be set again`)
    .addHelpText(
      "after",
      `\nExample:\n  fairlead ${owner.kind} secret list ${example} --json | jq '.secrets[] | select(.stale)'`,
    )
    .action((of: string, options: ClientOptions) => listSecrets(context, { owner, of }, options));
  command("delete")
    .description("delete a secret; running workloads keep it until they stop")
    .argument("<name>")
    .addHelpText("after", `\nExample:\n  fairlead ${owner.kind} secret delete ${example} ${exampleName}`)
    .action((of: string, name: string, options: ClientOptions) => deleteSecret(context, { owner, of, name }, options));
}

interface Owned {
  readonly owner: SecretCommandOwner;
  /** The owner's name or ID. */
  readonly of: string;
}

interface Which extends Owned {
  readonly name: string;
}

async function putSecret(context: CommandContext, which: Which, options: PutOptions): Promise<void> {
  const { terminal } = context;
  const value = await readSecretValue(terminal, options.fromFile);
  const host = platformHost(context, options);
  const call = { method: "PUT", path: await pathOf(host, which), body: { value } } as const;
  const secret = await callJson(host, call, which.owner.schema);
  print(terminal, secret, {
    json: options.json,
    text: ({ version }) => `set ${visible(which.name)}, version ${version}\n`,
  });
  if (value.endsWith("\n") && !options.json) terminal.note("the value ends with a line break, which is stored too");
}

async function listSecrets(context: CommandContext, { owner, of }: Owned, options: ClientOptions): Promise<void> {
  const host = platformHost(context, options);
  const listSchema = z.object({ secrets: z.array(owner.schema) });
  const answer = await callJson(host, { path: `${await owner.path(host, of)}/secrets` }, listSchema);
  print(context.terminal, answer, { json: options.json, text: ({ secrets }) => secretTable(owner, secrets) });
  const stale = answer.secrets.filter((secret) => secret.stale).map(({ name }) => name);
  if (stale.length > 0 && !options.json) {
    context.terminal.note(`must be set again because ${owner.staleSince}: ${stale.join(", ")}`);
  }
}

async function deleteSecret(context: CommandContext, which: Which, options: ClientOptions): Promise<void> {
  const host = platformHost(context, options);
  const answer = await callJson(host, { method: "DELETE", path: await pathOf(host, which) }, z.object({}));
  print(context.terminal, answer, { json: options.json, text: () => `deleted ${visible(which.name)}\n` });
}

async function pathOf(host: PlatformConnection, { owner, of, name }: Which): Promise<string> {
  return `${await owner.path(host, of)}/secrets/${encodeURIComponent(name)}`;
}

function article(kind: string): string {
  return kind.startsWith("a") ? `an ${kind}` : `a ${kind}`;
}

function secretTable({ kind }: SecretCommandOwner, secrets: readonly Secret[]): string {
  if (secrets.length === 0)
    return `no secrets; set one with \`fairlead ${kind} secret put ${kind.toUpperCase()} NAME\`\n`;
  const rows = secrets.map(({ name, version, updatedAt, stale }) => [
    name,
    String(version),
    updatedAt,
    stale ? "stale" : "current",
  ]);
  return formatTable(["NAME", "VERSION", "UPDATED", "STATE"], rows);
}
