import { projectKeySchema } from "@fairlead/protocol/resources";
import type { Command } from "commander";
import { z } from "zod";
import { addPlatformOptions, addProjectOption, type ClientOptions, platformHost } from "../client-options.ts";
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
      const host = platformHost(context, options);
      const path = `${host.projectPath()}/keys`;
      const body = { projectId: host.projectId(), name };
      const call = { method: "POST", path, body, idempotencyKey: context.ids.next("request") } as const;
      const answer = await callJson(host, call, createdSchema);
      print(context.terminal, answer, { json: options.json, text: (created) => `${created.key.keyValue}\n` });
      if (!options.json) context.terminal.note(`key ${answer.key.keyId}: keep the value, it is not shown again`);
    });
}
