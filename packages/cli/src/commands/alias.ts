import { type ModelAlias, modelAliasSchema } from "@fairlead/protocol/providers";
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
import { addLimitOption, type ListOptions, listAll } from "../list-all.ts";
import { print } from "../output.ts";
import { formatTable } from "../table.ts";
import { visible } from "../visible.ts";

export function addAliasCommands(program: Command, context: Context): void {
  const alias = program.command("alias").description("aliases: a project's own names for models");
  const command = (name: string): Command => addProjectOption(addPlatformOptions(alias.command(name)));
  addLimitOption(command("list"))
    .description("list a project's aliases and what they stand for")
    .addHelpText("after", "\nExample:\n  fairlead alias list")
    .action((options: ClientOptions & ListOptions) => listAliases(context, options));
  command("set")
    .description("make an alias, or give it other targets; the next one is tried where one cannot answer")
    .argument("<name>")
    .argument("<target...>", "<provider>/<model>, the preferred one first")
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

async function listAliases(context: Context, options: ClientOptions & ListOptions): Promise<void> {
  const host = platformHost(context, options);
  const list = { path: `${host.projectPath()}/aliases`, field: "aliases", item: modelAliasSchema };
  const aliases = await listAll(host, list, options);
  const table =
    aliases.length === 0 ? "no aliases yet: `fairlead alias set NAME TARGET` makes one\n" : aliasTable(aliases);
  print(context.terminal, { aliases }, { json: options.json, text: () => table });
}

async function setAlias(
  context: Context,
  { name, targets }: Pick<ModelAlias, "name"> & { readonly targets: readonly string[] },
  options: ClientOptions,
): Promise<void> {
  const host = platformHost(context, options);
  const call = { method: "PUT", path: pathOf(host, name), body: { targets } } as const;
  const alias = await callJson(host, call, modelAliasSchema);
  print(context.terminal, alias, { json: options.json, text: (set) => aliasTable([set]) });
}

async function deleteAlias(context: Context, name: string, options: ClientOptions): Promise<void> {
  const host = platformHost(context, options);
  const answer = await callJson(host, { method: "DELETE", path: pathOf(host, name) }, z.object({}));
  print(context.terminal, answer, { json: options.json, text: () => `deleted ${visible(name)}\n` });
}

function pathOf(host: Platform, name: string): string {
  return `${host.projectPath()}/aliases/${encodeURIComponent(name)}`;
}

function aliasTable(aliases: readonly ModelAlias[]): string {
  return formatTable(
    ["ALIAS", "TARGETS"],
    aliases.map(({ name, targets }) => [name, targets.join(", ")]),
  );
}
