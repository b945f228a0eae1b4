import {
  PROVIDER_PRESET_NAMES,
  type Provider,
  type ProviderCheck,
  providerCheckSchema,
  providerSchema,
} from "@fairlead/protocol/providers";
import { type Command, Option } from "commander";
import { z } from "zod";
import { CliError, UsageError } from "../../cli-error.ts";
import type { CommandContext } from "../../context.ts";
import {
  addPlatformOptions,
  addProjectOption,
  type ClientOptions,
  type PlatformConnection,
  platformHost,
} from "../../platform/client-options.ts";
import { callJson } from "../../platform/http-client.ts";
import { addLimitOption, type ListOptions, listAll } from "../../terminal/list-all.ts";
import { print } from "../../terminal/output.ts";
import { formatTable } from "../../terminal/table.ts";
import { visible } from "../../terminal/visible.ts";
import { addSettingOptions, type SettingOptions, settingFields } from "./provider-settings.ts";

interface CreateOptions extends ClientOptions, SettingOptions {
  readonly preset?: string;
}
interface UpdateOptions extends ClientOptions, SettingOptions {
  readonly forgetCredential?: boolean;
}

const createdSchema = z.object({ provider: providerSchema });

export function addProviderCommands(program: Command, context: CommandContext): void {
  const provider = program
    .command("provider")
    .description("providers: external APIs that serve models in addition to nodes");
  const command = (name: string): Command => addProjectOption(addPlatformOptions(provider.command(name)));
  addLimitOption(command("list"))
    .description("list the providers that a project can call, including the platform's")
    .addHelpText("after", "\nExample:\n  fairlead provider list")
    .action((options: ClientOptions & ListOptions) => listProviders(context, options));
  addSettingOptions(command("create"))
    .description("add a provider to a project, using the project's own account")
    .argument("<name>", "the provider's name: the part of model names before the /")
    .addOption(new Option("--preset <name>", "a well-known provider").choices(PROVIDER_PRESET_NAMES))
    .addHelpText(
      "after",
      "\nExamples:\n  fairlead provider create openai --preset openai --credential-file openai.key\n" +
        "  pass show acme | fairlead provider create acme --url https://api.example.com/v1 --credential-file - --model large",
    )
    .action((name: string, options: CreateOptions) => createProvider(context, name, options));
  command("get")
    .description("show a provider, without its credential")
    .argument("<name>")
    .addHelpText("after", "\nExample:\n  fairlead provider get openai --json")
    .action((name: string, options: ClientOptions) => getProvider(context, name, options));
  addSettingOptions(command("update"))
    .description("change a provider; changing the URL removes the credential unless a new one is set")
    .argument("<name>")
    .addOption(new Option("--forget-credential", "remove the credential").conflicts("credentialFile"))
    .addHelpText("after", "\nExample:\n  fairlead provider update openai --credential-file new.key")
    .action((name: string, options: UpdateOptions) => updateProvider(context, name, options));
  command("delete")
    .description("delete a provider and its credential; aliases skip it")
    .argument("<name>")
    .addHelpText("after", "\nExample:\n  fairlead provider delete acme")
    .action((name: string, options: ClientOptions) => deleteProvider(context, name, options));
  command("check")
    .description("test a provider's URL and credential, and list its models")
    .argument("<name>")
    .addHelpText("after", "\nExample:\n  fairlead provider check openai")
    .action((name: string, options: ClientOptions) => checkProvider(context, name, options));
}

async function listProviders(context: CommandContext, options: ClientOptions & ListOptions): Promise<void> {
  const host = platformHost(context, options);
  const list = { path: `${host.projectPath()}/providers`, field: "providers", item: providerSchema };
  const providers = await listAll(host, list, options);
  print(context.terminal, { providers }, { json: options.json, text: (answer) => providerTable(answer.providers) });
}

async function createProvider(context: CommandContext, name: string, options: CreateOptions): Promise<void> {
  const host = platformHost(context, options);
  const { preset } = options;
  const fields = await settingFields(context.terminal, options);
  const body = { name, ...(preset === undefined ? {} : { preset }), ...fields };
  const path = `${host.projectPath()}/providers`;
  const call = { method: "POST", path, body, idempotencyKey: context.ids.next("request") } as const;
  const answer = await callJson(host, call, createdSchema);
  print(context.terminal, answer, { json: options.json, text: (created) => providerTable([created.provider]) });
  if (!options.json) context.terminal.note(`test it: fairlead provider check ${name}`);
}

async function getProvider(context: CommandContext, name: string, options: ClientOptions): Promise<void> {
  const host = platformHost(context, options);
  const provider = await callJson(host, { path: pathOf(host, name) }, providerSchema);
  print(context.terminal, provider, { json: options.json, text: describe });
}

async function updateProvider(context: CommandContext, name: string, options: UpdateOptions): Promise<void> {
  const fields = await settingFields(context.terminal, options);
  const body = options.forgetCredential ? { ...fields, credential: null } : fields;
  if (Object.keys(body).length === 0) throw new UsageError("nothing to change; --help lists the options");
  const host = platformHost(context, options);
  const provider = await callJson(host, { method: "PATCH", path: pathOf(host, name), body }, providerSchema);
  print(context.terminal, provider, { json: options.json, text: describe });
  const cleared = options.url !== undefined && !provider.hasCredential && !options.forgetCredential;
  if (cleared && !options.json) {
    context.terminal.note("the credential was removed because the URL changed; set a new one with --credential-file");
  }
}

async function deleteProvider(context: CommandContext, name: string, options: ClientOptions): Promise<void> {
  const host = platformHost(context, options);
  const answer = await callJson(host, { method: "DELETE", path: pathOf(host, name) }, z.object({}));
  print(context.terminal, answer, { json: options.json, text: () => `deleted ${visible(name)}\n` });
}

/** Fails if the provider cannot be used, so that scripts can rely on the exit code. */
async function checkProvider(context: CommandContext, name: string, options: ClientOptions): Promise<void> {
  const host = platformHost(context, options);
  const call = { method: "POST", path: `${pathOf(host, name)}:check`, body: {} } as const;
  const check = await callJson(host, call, providerCheckSchema);
  print(context.terminal, check, { json: options.json, text: (found) => describeCheck(name, found) });
  if (check.result !== "ok") throw new CliError(options.json ? "" : visible(check.message));
}

function pathOf(host: PlatformConnection, name: string): string {
  return `${host.projectPath()}/providers/${encodeURIComponent(name)}`;
}

function describeCheck(name: string, { result, message, models, latencyMs }: ProviderCheck): string {
  if (result !== "ok") return "";
  const lines = models.map((model) => `${name}/${visible(model)}\n`).join("");
  return `${visible(message)} (${latencyMs} ms)\n${lines}`;
}

function describe(provider: Provider): string {
  const { baseUrl, protocols, hasCredential, credentialHeader, discovery, models, headers, forwardHeaders } = provider;
  const facts: readonly (readonly [string, string])[] = [
    ["name", provider.name],
    ["scope", provider.scope === "platform" ? "platform" : "project"],
    ["preset", provider.preset ?? ""],
    ["url", baseUrl],
    ["protocols", protocols.join(", ")],
    ["credential", hasCredential ? `set, sent in ${credentialHeader}` : "none"],
    [
      "headers",
      Object.entries(headers)
        .map(([header, value]) => `${header}: ${value}`)
        .join("; "),
    ],
    ["forwards", forwardHeaders.join(", ")],
    ["models", [...models.map(({ name }) => name), ...(discovery ? ["(discovered)"] : [])].join(", ")],
  ];
  const told = facts.filter(([, value]) => value !== "");
  return told.map(([fact, value]) => `${fact.padEnd(12)}${visible(value)}\n`).join("");
}

function providerTable(providers: readonly Provider[]): string {
  if (providers.length === 0) return "no providers; create one with `fairlead provider create NAME`\n";
  const rows = providers.map(({ name, scope, baseUrl, protocols, hasCredential, models, discovery }) => [
    name,
    scope,
    baseUrl,
    protocols.join(", "),
    hasCredential ? "set" : "none",
    discovery ? "discovered" : String(models.length),
  ]);
  return formatTable(["NAME", "SCOPE", "URL", "PROTOCOLS", "CREDENTIAL", "MODELS"], rows);
}
