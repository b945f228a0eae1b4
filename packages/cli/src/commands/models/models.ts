import type { Command } from "commander";
import { z } from "zod";
import type { CommandContext } from "../../context.ts";
import { formatDollarAmount } from "../../input/money.ts";
import { addInferenceOptions, type ClientOptions, inferenceHost, settingsFrom } from "../../platform/client-options.ts";
import { callJson } from "../../platform/http-client.ts";
import { print } from "../../terminal/output.ts";
import { formatTable } from "../../terminal/table.ts";
import { visible } from "../../terminal/visible.ts";

const modelSchema = z.looseObject({
  id: z.string(),
  context_length: z.number().optional(),
  prices: z.object({ input: z.number(), output: z.number(), per_request: z.number() }).optional(),
});
const modelsSchema = z.looseObject({
  data: z.array(modelSchema),
  /** The key's allowlist, set only if it excludes every model of the project. */
  model_allow_list: z.array(z.string()).optional(),
});
type Model = z.output<typeof modelSchema>;

export function addModelsCommand(program: Command, context: CommandContext): void {
  addInferenceOptions(program.command("models"))
    .description("list the models that your project key can call; prices are per million tokens")
    .addHelpText("after", "\nExample:\n  fairlead models --env-file .fairlead/quickstart.env")
    .action(async (options: ClientOptions) => {
      const host = inferenceHost(settingsFrom(options, context.env));
      const answer = await callJson(host, { path: "/v1/models" }, modelsSchema);
      print(context.terminal, answer, { json: options.json, text: ({ data }) => modelTable(data) });
      if (answer.data.length === 0) context.terminal.note(whyNone(answer.model_allow_list));
    });
}

function whyNone(allowList: readonly string[] | undefined): string {
  if (allowList === undefined) return "no models: this project has no ready node and no provider";
  const list = allowList.length === 0 ? "is empty" : `allows only ${visible(allowList.join(", "))}`;
  return (
    `no models: the key's model allowlist ${list}, and the project has none of those. ` +
    "Change it with `fairlead key update KEY --model NAME`."
  );
}

/** Only names, one per line, if no model has a context length or price. */
function modelTable(models: readonly Model[]): string {
  const known = models.some(({ context_length, prices }) => context_length !== undefined || prices !== undefined);
  if (!known) return models.map(({ id }) => `${id}\n`).join("");
  return formatTable(["MODEL", "CONTEXT", "INPUT", "OUTPUT", "PER CALL"], models.map(modelRow));
}

function modelRow({ id, context_length, prices }: Model): string[] {
  const perCall = prices === undefined || prices.per_request === 0 ? "" : formatDollarAmount(prices.per_request);
  return [
    id,
    context_length === undefined ? "" : String(context_length),
    prices === undefined ? "" : formatDollarAmount(prices.input),
    prices === undefined ? "" : formatDollarAmount(prices.output),
    perCall,
  ];
}
