import { type Project, projectSchema } from "@fairlead/protocol/resources";
import type { Command } from "commander";
import { z } from "zod";
import type { CommandContext } from "../../context.ts";
import {
  addPlatformOptions,
  type ClientOptions,
  type PlatformConnection,
  platformHost,
} from "../../platform/client-options.ts";
import { callJson } from "../../platform/http-client.ts";
import { type ConfirmOptions, confirmName, confirmOption } from "../../terminal/confirm-name.ts";
import { addLimitOption, type ListOptions, listAll } from "../../terminal/list-all.ts";
import { print } from "../../terminal/output.ts";
import { formatTable } from "../../terminal/table.ts";
import { visible } from "../../terminal/visible.ts";
import { addProjectLimitCommands } from "./project-limits.ts";

interface DeleteOptions extends ClientOptions, ConfirmOptions {}

const createdSchema = z.object({ project: projectSchema });

const describe = (project: Project): string => `${project.id} ${visible(project.name)}\n`;
const pathOf = (id: string): string => `/v1/projects/${encodeURIComponent(id)}`;

export function addProjectCommands(program: Command, context: CommandContext): void {
  const project = program.command("project").description("projects, which group members, keys, nodes and chats");
  addPlatformOptions(project.command("create"))
    .description("create a project; you become its owner")
    .argument("<name>")
    .addHelpText("after", '\nExample:\n  fairlead project create "Research"')
    .action((name: string, options: ClientOptions) => createProject(context, name, options));
  addLimitOption(addPlatformOptions(project.command("list")))
    .description("list your projects")
    .addHelpText(
      "after",
      "\nExamples:\n  fairlead project list\n  fairlead project list --json | jq -r '.projects[].id'",
    )
    .action((options: ClientOptions & ListOptions) => listProjects(context, options));
  addPlatformOptions(project.command("get"))
    .description("show a project")
    .argument("<id>")
    .addHelpText("after", "\nExample:\n  fairlead project get $FAIRLEAD_PROJECT_ID --json")
    .action((id: string, options: ClientOptions) => getProject(context, id, options));
  addPlatformOptions(project.command("rename"))
    .description("rename a project")
    .argument("<id>")
    .argument("<name>")
    .addHelpText("after", '\nExample:\n  fairlead project rename $FAIRLEAD_PROJECT_ID "Research and teaching"')
    .action((id: string, name: string, options: ClientOptions) => renameProject(context, { id, name }, options));
  addPlatformOptions(project.command("default-model"))
    .description("set the model for calls that do not name one; omit the model to use the server's default")
    .argument("<id>")
    .argument("[model]", "<provider>/<model>, or an alias")
    .addHelpText("after", "\nExample:\n  fairlead project default-model $FAIRLEAD_PROJECT_ID openai/gpt-5.1-mini")
    .action((id: string, model: string | undefined, options: ClientOptions) =>
      setDefaultModel(context, { id, model: model ?? null }, options),
    );
  addProjectLimitCommands(project, context);
  addPlatformOptions(project.command("delete"))
    .description("permanently delete a project with its nodes, keys and chats")
    .argument("<id>")
    .option(...confirmOption("project"))
    .addHelpText("after", '\nExample:\n  fairlead project delete $FAIRLEAD_PROJECT_ID --confirm "Research"')
    .action((id: string, options: DeleteOptions) => deleteProject(context, id, options));
  addPlatformOptions(project.command("use"))
    .description("set the default project for commands")
    .argument("<id>")
    .addHelpText("after", "\nExample:\n  fairlead project use prj_01kc3b6q2v8r5x0m7n4t9w1yza")
    .action((id: string, options: ClientOptions) => useProject(context, id, options));
}

async function createProject(context: CommandContext, name: string, options: ClientOptions): Promise<void> {
  const host = platformHost(context, options);
  const idempotencyKey = context.ids.next("request");
  const call = { method: "POST", path: "/v1/projects", body: { name }, idempotencyKey } as const;
  const answer = await callJson(host, call, createdSchema);
  print(context.terminal, answer, { json: options.json, text: (created) => describe(created.project) });
}

async function listProjects(context: CommandContext, options: ClientOptions & ListOptions): Promise<void> {
  const host = platformHost(context, options);
  const list = { path: "/v1/projects", field: "projects", item: projectSchema };
  const projects = await listAll(host, list, options);
  print(context.terminal, { projects }, { json: options.json, text: (answer) => projectTable(answer.projects) });
}

async function getProject(context: CommandContext, id: string, options: ClientOptions): Promise<void> {
  const found = await fetchProject(platformHost(context, options), id);
  print(context.terminal, found, { json: options.json, text: describe });
}

async function renameProject(
  context: CommandContext,
  { id, name }: { readonly id: string; readonly name: string },
  options: ClientOptions,
): Promise<void> {
  const call = { method: "PATCH", path: pathOf(id), body: { name } } as const;
  const renamed = await callJson(platformHost(context, options), call, projectSchema);
  print(context.terminal, renamed, { json: options.json, text: describe });
}

async function setDefaultModel(
  context: CommandContext,
  { id, model }: { readonly id: string; readonly model: string | null },
  options: ClientOptions,
): Promise<void> {
  const call = { method: "PATCH", path: pathOf(id), body: { defaultModel: model } } as const;
  const changed = await callJson(platformHost(context, options), call, projectSchema);
  const text =
    model === null
      ? "the project has no default model; the server's default applies\n"
      : `calls without a model use ${visible(model)}\n`;
  print(context.terminal, changed, { json: options.json, text: () => text });
}

async function deleteProject(context: CommandContext, id: string, options: DeleteOptions): Promise<void> {
  const host = platformHost(context, options);
  const { name } = await fetchProject(host, id);
  const condemned = { kind: "project", name, goesWithIt: "with its nodes, keys and chats" };
  await confirmName(context.terminal, condemned, options);
  const path = `${pathOf(id)}?${new URLSearchParams({ confirmName: name }).toString()}`;
  const answer = await callJson(host, { method: "DELETE", path }, z.object({}));
  if (context.logins.projectId(host.url) === id) await context.logins.useProject(host.url, null);
  print(context.terminal, answer, { json: options.json, text: () => `deleting ${id} ${visible(name)}\n` });
  if (!options.json)
    context.terminal.note("its keys no longer work; running calls on its nodes may finish, then everything is deleted");
}

/** Fetches the project first, so that a wrong ID fails here and not in every later command. */
async function useProject(context: CommandContext, id: string, options: ClientOptions): Promise<void> {
  const host = platformHost(context, options);
  const found = await fetchProject(host, id);
  await context.logins.useProject(host.url, found.id);
  print(context.terminal, found, { json: options.json, text: describe });
  const set = host.settings.find("FAIRLEAD_PROJECT_ID");
  if (set !== null && set !== found.id)
    context.terminal.note("FAIRLEAD_PROJECT_ID is set, so commands use that project. Run `unset FAIRLEAD_PROJECT_ID`.");
}

function fetchProject(host: PlatformConnection, id: string): Promise<Project> {
  return callJson(host, { path: pathOf(id) }, projectSchema);
}

function projectTable(projects: readonly Project[]): string {
  if (projects.length === 0) return "no projects; create one with `fairlead project create NAME`\n";
  const rows = projects.map(({ id, name, createdAt, deletingSince }) => [
    id,
    name,
    createdAt,
    deletingSince === undefined ? "" : "deleting",
  ]);
  return formatTable(["ID", "NAME", "CREATED", ""], rows);
}
