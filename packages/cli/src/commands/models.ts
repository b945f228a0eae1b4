import type { Command } from "commander";
import { z } from "zod";
import { addInferenceOptions, type ClientOptions, inferenceHost, settingsFrom } from "../client-options.ts";
import type { Context } from "../context.ts";
import { callJson } from "../http-client.ts";
import { formatDollars } from "../money.ts";
import { print } from "../output.ts";
import { formatTable } from "../table.ts";

const modelSchema = z.looseObject({
  id: z.string(),
  context_length: z.number().optional(),
  prices: z.object({ input: z.number(), output: z.number(), per_request: z.number() }).optional(),
});
const modelsSchema = z.looseObject({ data: z.array(modelSchema) });
type Model = z.output<typeof modelSchema>;

export function addModelsCommand(program: Command, context: Context): void {
  addInferenceOptions(program.command("models"))
    .description("list the models that your project key may call; prices are for a million tokens")
    .addHelpText("after", "\nExample:\n  fairlead models --env-file .fairlead/quickstart.env")
    .action(async (options: ClientOptions) => {
      const host = inferenceHost(settingsFrom(options, context.env));
      const answer = await callJson(host, { path: "/v1/models" }, modelsSchema);
      print(context.terminal, answer, { json: options.json, text: ({ data }) => modelTable(data) });
      if (answer.data.length === 0)
        context.terminal.note("no models: no node of this project is ready, and no provider is set");
    });
}

/** Names alone, one a line, where nothing else is known of any. */
function modelTable(models: readonly Model[]): string {
  const known = models.some(({ context_length, prices }) => context_length !== undefined || prices !== undefined);
  if (!known) return models.map(({ id }) => `${id}\n`).join("");
  return formatTable(["MODEL", "CONTEXT", "INPUT", "OUTPUT", "A CALL"], models.map(modelRow));
}

function modelRow({ id, context_length, prices }: Model): string[] {
  const perCall = prices === undefined || prices.per_request === 0 ? "" : formatDollars(prices.per_request);
  return [
    id,
    context_length === undefined ? "" : String(context_length),
    prices === undefined ? "" : formatDollars(prices.input),
    prices === undefined ? "" : formatDollars(prices.output),
    perCall,
  ];
}
