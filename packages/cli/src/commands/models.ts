import type { Command } from "commander";
import { z } from "zod";
import { addInferenceOptions, type ClientOptions, inferenceHost, settingsFrom } from "../client-options.ts";
import type { Context } from "../context.ts";
import { callJson } from "../http-client.ts";
import { print } from "../output.ts";

const modelsSchema = z.looseObject({ data: z.array(z.looseObject({ id: z.string() })) });

export function addModelsCommand(program: Command, context: Context): void {
  addInferenceOptions(program.command("models"))
    .description("list the models that your project key may call")
    .addHelpText("after", "\nExample:\n  fairlead models --env-file .fairlead/quickstart.env")
    .action(async (options: ClientOptions) => {
      const host = inferenceHost(settingsFrom(options, context.env));
      const answer = await callJson(host, { path: "/v1/models" }, modelsSchema);
      print(context.terminal, answer, {
        json: options.json,
        text: ({ data }) => data.map(({ id }) => `${id}\n`).join(""),
      });
      if (answer.data.length === 0) context.terminal.note("no models: no node of this project is ready");
    });
}
