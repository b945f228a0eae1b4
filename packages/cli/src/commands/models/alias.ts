import { type ModelAlias, modelAliasSchema } from "@fairlead/protocol/providers";
import type { Command } from "commander";
import { z } from "zod";
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

export function addAliasCommands(program: Command, context: CommandContext): void {
  const alias = program.command("alias").description("aliases: a project's own names for models");
  const command = (name: string): Command => addProjectOption(addPlatformOptions(alias.command(name)));
  addLimitOption(command("list"))
    .description("list a project's aliases and their targets")
    .addHelpText("after", "\nExample:\n  fairlead alias list")
    .action((options: ClientOptions & ListOptions) => listAliases(context, options));
  command("set")
    .description("create an alias or replace its targets; if a target is unavailable, the next one is tried")
    .argument("<name>")
    .argument("<target...>", "<provider>/<model>, in order of preference")
    .addHelpText("after", "\nExample:\n  fairlead alias set fast nodes/qwen3-8b openai/gpt-5.1-mini")
    .action((name: string, targets: readonly string[], options: ClientOptions) =>
      setAlias(context, { name, targets }, options),
    );
  command("delete")
    .description("delete an alias")
    .argument("<name>")
    .addHelpText("after", "\nExample:\n  fairlead alias delete fast")
    .action((name: string, options: ClientOptions) => deleteAlias(context, name, options));
}

async function listAliases(context: CommandContext, options: ClientOptions & ListOptions): Promise<void> {
  const host = platformHost(context, options);
  const list = { path: `${host.projectPath()}/aliases`, field: "aliases", item: modelAliasSchema };
  const aliases = await listAll(host, list, options);
  const table =
    aliases.length === 0 ? "no aliases; create one with `fairlead alias set NAME TARGET`\n" : aliasTable(aliases);
  print(context.terminal, { aliases }, { json: options.json, text: () => table });
}

async function setAlias(
  context: CommandContext,
  { name, targets }: Pick<ModelAlias, "name"> & { readonly targets: readonly string[] },
  options: ClientOptions,
): Promise<void> {
  const host = platformHost(context, options);
  const call = { method: "PUT", path: pathOf(host, name), body: { targets } } as const;
  const alias = await callJson(host, call, modelAliasSchema);
  print(context.terminal, alias, { json: options.json, text: (set) => aliasTable([set]) });
}

async function deleteAlias(context: CommandContext, name: string, options: ClientOptions): Promise<void> {
  const host = platformHost(context, options);
  const answer = await callJson(host, { method: "DELETE", path: pathOf(host, name) }, z.object({}));
  print(context.terminal, answer, { json: options.json, text: () => `deleted ${visible(name)}\n` });
}

function pathOf(host: PlatformConnection, name: string): string {
  return `${host.projectPath()}/aliases/${encodeURIComponent(name)}`;
}

function aliasTable(aliases: readonly ModelAlias[]): string {
  return formatTable(
    ["ALIAS", "TARGETS"],
    aliases.map(({ name, targets }) => [name, targets.join(", ")]),
  );
}
