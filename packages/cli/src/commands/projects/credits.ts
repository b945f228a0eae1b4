import { type Command, InvalidArgumentError } from "commander";
import { z } from "zod";
import { UsageError } from "../../cli-error.ts";
import type { CommandContext } from "../../context.ts";
import { formatDollarAmount, parseDollars } from "../../input/money.ts";
import {
  addPlatformOptions,
  addProjectOption,
  type ClientOptions,
  platformHost,
} from "../../platform/client-options.ts";
import { callJson } from "../../platform/http-client.ts";
import { type LocalOptions, withLocalAdmin } from "../../platform/local-admin.ts";
import { addLimitOption, type ListOptions, listAll } from "../../terminal/list-all.ts";
import { print } from "../../terminal/output.ts";
import { formatTable } from "../../terminal/table.ts";
import { visible } from "../../terminal/visible.ts";

const balanceSchema = z.object({
  mode: z.enum(["off", "prepaid"]),
  balanceNanoDollars: z.number(),
  heldNanoDollars: z.number(),
  runningCalls: z.number(),
});
const entrySchema = z.object({
  id: z.string(),
  at: z.string(),
  kind: z.string(),
  amountNanoDollars: z.number(),
  callId: z.string().nullable(),
  keyId: z.string().nullable(),
  note: z.string(),
});
const addedSchema = z.object({ ledgerEntry: entrySchema });

/** The ledger grows with every call. */
const NEWEST = 50;

interface AddOptions extends ClientOptions, LocalOptions {
  readonly local?: boolean;
  readonly note?: string;
  readonly takeBack?: boolean;
}

export function addCreditsCommands(program: Command, context: CommandContext): void {
  const credits = program.command("credits").description("credits: a project's balance and its ledger");
  const command = (name: string): Command => addProjectOption(addPlatformOptions(credits.command(name)));
  command("balance")
    .description("show a project's balance and the amount reserved by running calls")
    .addHelpText("after", "\nExample:\n  fairlead credits balance")
    .action((options: ClientOptions) => showBalance(context, options));
  command("add")
    .description("add credits to a project's balance; requires a platform administrator")
    .argument("<dollars>", "such as 25 or 0.50", parseAmount)
    .option("--note <text>", "a note, such as an invoice number")
    .option("--take-back", "deduct from the balance instead; at most the amount that is neither spent nor reserved")
    .option("--local", "on the server's machine: use the server's data folder, without signing in")
    .option("--config <file>", "with --local: server configuration file (default: $FAIRLEAD_CONFIG)")
    .addHelpText(
      "after",
      "\nExamples:\n  fairlead credits add 25 --project prj_01kc3b6q2v8r5x0m7n4t9w1yza --note 'Invoice 17'" +
        "\n  fairlead credits add 25 --project prj_01kc3b6q2v8r5x0m7n4t9w1yza --local --config /etc/fairlead/config.yaml",
    )
    .action((nanoDollars: number, options: AddOptions) => addCredits(context, nanoDollars, options));
  addLimitOption(command("ledger"), NEWEST)
    .description("show all balance changes, newest first")
    .addHelpText("after", "\nExample:\n  fairlead credits ledger --limit 200 --json")
    .action((options: ClientOptions & ListOptions) => showLedger(context, options));
}

function parseAmount(text: string): number {
  const nanoDollars = parseDollars(text);
  if (nanoDollars === null || nanoDollars === 0)
    throw new InvalidArgumentError("Must be an amount in dollars, such as 25 or 0.50.");
  return nanoDollars;
}

async function showBalance(context: CommandContext, options: ClientOptions): Promise<void> {
  const host = platformHost(context, options);
  const answer = await callJson(host, { path: `${host.projectPath()}/balance` }, balanceSchema);
  print(context.terminal, answer, {
    json: options.json,
    text: ({ mode, balanceNanoDollars, heldNanoDollars, runningCalls }) => {
      const held = `${formatDollarAmount(heldNanoDollars)} reserved by ${runningCalls} running calls`;
      const off = mode === "off" ? " (billing is off: calls are not charged)" : "";
      return `${formatDollarAmount(balanceNanoDollars)} left, ${held}${off}\n`;
    },
  });
}

async function addCredits(context: CommandContext, nanoDollars: number, options: AddOptions): Promise<void> {
  if (options.config !== undefined && !options.local) throw new UsageError("--config requires --local");
  const host = platformHost(context, options);
  const body = { amountNanoDollars: options.takeBack ? -nanoDollars : nanoDollars, note: options.note ?? "" };
  const path = `${host.projectPath()}/credits`;
  const call = { method: "POST", path, body, idempotencyKey: context.ids.next("request") } as const;
  const answer = options.local
    ? await withLocalAdmin(context, options, (admin) => admin.addCredits({ projectId: host.projectId(), ...body }))
    : await callJson(host, call, addedSchema);
  print(context.terminal, answer, {
    json: options.json,
    text: ({ ledgerEntry }) => `${signed(ledgerEntry.amountNanoDollars)} for ${host.projectId()}\n`,
  });
}

async function showLedger(context: CommandContext, options: ClientOptions & ListOptions): Promise<void> {
  const host = platformHost(context, options);
  const list = { path: `${host.projectPath()}/ledger`, field: "ledgerEntries", item: entrySchema };
  const ledgerEntries = await listAll(host, list, options);
  print(context.terminal, { ledgerEntries }, { json: options.json, text: (answer) => table(answer.ledgerEntries) });
}

function table(entries: readonly z.infer<typeof entrySchema>[]): string {
  if (entries.length === 0) return "no ledger entries\n";
  const rows = entries.map(({ at, kind, amountNanoDollars, callId, note }) => [
    at,
    kind,
    signed(amountNanoDollars),
    callId ?? "",
    visible(note),
  ]);
  return formatTable(["TIME", "KIND", "AMOUNT", "CALL", "NOTE"], rows);
}

function signed(nanoDollars: number): string {
  return `${nanoDollars < 0 ? "-" : "+"}${formatDollarAmount(Math.abs(nanoDollars))}`;
}
