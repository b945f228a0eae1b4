import { projectKeySchema } from "@fairlead/protocol/resources";
import type { Command } from "commander";
import { z } from "zod";
import {
  addPlatformOptions,
  addProjectOption,
  type ClientOptions,
  platformHost,
  settingsFrom,
} from "../client-options.ts";
import type { Context } from "../context.ts";
import { callJson } from "../http-client.ts";
import { print } from "../output.ts";

const createdSchema = z.object({ key: projectKeySchema.required({ keyValue: true }) });

export function addKeyCommands(program: Command, context: Context): void {
  const key = program.command("key").description("project keys: what programs call the inference host with");
  addProjectOption(addPlatformOptions(key.command("create")))
    .description("make a project key; its value is shown this once")
    .argument("<name>")
    .addHelpText("after", "\nExample:\n  export FAIRLEAD_API_KEY=$(fairlead key create laptop)")
    .action(async (name: string, options: ClientOptions) => {
      const settings = settingsFrom(options, context.env);
      const projectId = settings.required("FAIRLEAD_PROJECT_ID");
      const path = `/v1/projects/${encodeURIComponent(projectId)}/keys`;
      const call = { method: "POST", path, body: { projectId, name } } as const;
      const answer = await callJson(platformHost(settings), call, createdSchema);
      print(context.terminal, answer, { json: options.json, text: (created) => `${created.key.keyValue}\n` });
      if (!options.json) context.terminal.note(`key ${answer.key.keyId}: keep the value, it is not shown again`);
    });
}
