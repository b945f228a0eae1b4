import { type Project, projectSchema } from "@fairlead/protocol/resources";
import type { Command } from "commander";
import { z } from "zod";
import { addPlatformOptions, type ClientOptions, platformHost, settingsFrom } from "../client-options.ts";
import type { Context } from "../context.ts";
import { callJson } from "../http-client.ts";
import { print } from "../output.ts";

const createdSchema = z.object({ project: projectSchema });

const describe = (project: Project): string => `${project.id} ${project.name}\n`;

export function addProjectCommands(program: Command, context: Context): void {
  const project = program.command("project").description("projects: who shares keys, nodes and chats");
  addPlatformOptions(project.command("create"))
    .description("make a project; you become its owner")
    .argument("<name>")
    .addHelpText("after", '\nExample:\n  fairlead project create "Research"')
    .action(async (name: string, options: ClientOptions) => {
      const host = platformHost(settingsFrom(options, context.env));
      const answer = await callJson(host, { method: "POST", path: "/v1/projects", body: { name } }, createdSchema);
      print(context.terminal, answer, { json: options.json, text: (created) => describe(created.project) });
    });
  addPlatformOptions(project.command("get"))
    .description("show a project")
    .argument("<id>")
    .addHelpText("after", "\nExample:\n  fairlead project get $FAIRLEAD_PROJECT_ID --json")
    .action(async (id: string, options: ClientOptions) => {
      const host = platformHost(settingsFrom(options, context.env));
      const answer = await callJson(host, { path: `/v1/projects/${encodeURIComponent(id)}` }, projectSchema);
      print(context.terminal, answer, { json: options.json, text: describe });
    });
}
