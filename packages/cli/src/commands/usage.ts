import { type Command, InvalidArgumentError, Option } from "commander";
import { z } from "zod";
import { UsageError } from "../cli-error.ts";
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
import { readMoment } from "../moment.ts";
import { formatDollars } from "../money.ts";
import { print } from "../output.ts";
import { formatTable } from "../table.ts";

const sumsSchema = z.object({
  calls: z.number(),
  estimatedCalls: z.number(),
  inputTokens: z.number(),
  cachedInputTokens: z.number(),
  outputTokens: z.number(),
  reasoningTokens: z.number(),
  costNanoDollars: z.number(),
});
const reportSchema = z.object({
  from: z.string(),
  to: z.string(),
  groupBy: z.array(z.string()),
  totals: sumsSchema,
  groups: z.array(sumsSchema.catchall(z.union([z.string(), z.number(), z.null()]))),
});
const callSchema = z.object({
  requestId: z.string(),
  at: z.string(),
  keyId: z.string().nullable(),
  userId: z.string().nullable(),
  agentId: z.string().nullable(),
  model: z.string().nullable(),
  upstream: z.string().nullable(),
  dialect: z.string(),
  stream: z.boolean(),
  outcome: z.string(),
  status: z.number().nullable(),
  inputTokens: z.number(),
  cachedInputTokens: z.number(),
  outputTokens: z.number(),
  reasoningTokens: z.number(),
  estimated: z.boolean(),
  costNanoDollars: z.number(),
  attempts: z.number(),
  overheadMs: z.number().nullable(),
  firstTokenMs: z.number().nullable(),
  durationMs: z.number(),
});
type Report = z.infer<typeof reportSchema>;
type UsageCall = z.infer<typeof callSchema>;

/** By the names that `--by` takes: the field of a group that tells it. */
const FIELDS: Readonly<Record<string, string>> = {
  day: "day",
  hour: "hour",
  model: "model",
  key: "keyId",
  user: "userId",
  agent: "agentId",
  upstream: "upstream",
  outcome: "outcome",
};

interface UsageOptions extends ClientOptions, ListOptions {
  readonly from?: string;
  readonly to?: string;
  readonly by?: readonly string[];
  readonly calls?: boolean;
  readonly key?: string;
  readonly agent?: string;
  readonly model?: string;
  readonly outcome?: string;
}

/** Calls have no natural end that somebody waits for. */
const NEWEST = 50;

export function addUsageCommand(program: Command, context: Context): void {
  addLimitOption(addProjectOption(addPlatformOptions(program.command("usage"))), NEWEST)
    .description("show what a project's calls used and cost; days and hours are UTC")
    .option("--from <time>", "from this time on: 7d (ago), 2026-12-31 or 2026-12-31T18:00:00Z; 30 days by default")
    .option("--to <time>", "before this time; a day counts whole")
    .option("--by <names>", `what to tell apart: ${Object.keys(FIELDS).join(", ")} (by default the day)`, parseNames)
    .addOption(new Option("--calls", "single calls, the newest first, instead of sums").conflicts("by"))
    .option("--key <id>", "with --calls: those with this key")
    .option("--agent <id>", "with --calls: those of this agent")
    .option("--model <name>", "with --calls: those of this model")
    .option("--outcome <name>", "with --calls: those that ended so, such as ok or rate_limit_exceeded")
    .addHelpText(
      "after",
      "\nExamples:\n  fairlead usage --from 7d --by model,day\n  fairlead usage --calls --outcome insufficient_balance --json",
    )
    .action((options: UsageOptions) => (options.calls ? showCalls(context, options) : showSums(context, options)));
}

function parseNames(text: string): readonly string[] {
  const names = text.split(",").map((name) => name.trim());
  if (names.every((name) => Object.hasOwn(FIELDS, name))) return names;
  throw new InvalidArgumentError(`Write names of ${Object.keys(FIELDS).join(", ")}, parted by commas.`);
}

function spanOf({ clock }: Context, { from, to }: UsageOptions): Readonly<Record<string, string | undefined>> {
  const now = clock.now();
  return {
    from: from && readMoment(from, { now, durations: "ago", days: "begin" }),
    to: to && readMoment(to, { now, durations: "ago", days: "end" }),
  };
}

async function showSums(context: Context, options: UsageOptions): Promise<void> {
  if (options.key ?? options.agent ?? options.model ?? options.outcome) {
    throw new UsageError(
      "--key, --agent, --model and --outcome go with --calls; to tell sums apart, use --by key,agent,model,outcome",
    );
  }
  const host = platformHost(context, options);
  const query = { ...spanOf(context, options), groupBy: options.by?.join(",") };
  const set = Object.entries(query).filter((entry): entry is [string, string] => Boolean(entry[1]));
  const path = `${host.projectPath()}/usage?${new URLSearchParams(set).toString()}`;
  const report = await callJson(host, { path }, reportSchema);
  print(context.terminal, report, { json: options.json, text: sumsTable });
}

async function showCalls(context: Context, options: UsageOptions): Promise<void> {
  const host: Platform = platformHost(context, options);
  const { key: keyId, agent: agentId, model, outcome } = options;
  const query = { ...spanOf(context, options), keyId, agentId, model, outcome };
  const list = { path: `${host.projectPath()}/usage/calls`, field: "calls", item: callSchema, query };
  const calls = await listAll(host, list, options);
  print(context.terminal, { calls }, { json: options.json, text: (answer) => callsTable(answer.calls) });
}

const SUM_COLUMNS = ["CALLS", "INPUT", "CACHED", "OUTPUT", "THINKING", "COST"];

function sumsTable({ from, to, groupBy, totals, groups }: Report): string {
  const span = `${shortTime(from)} to ${shortTime(to)} UTC`;
  if (groups.length === 0) return `no calls from ${span}\n`;
  const rows = groups.map((group) => [
    ...groupBy.map((name) => String(group[FIELDS[name] ?? name] ?? "-")),
    ...sumCells(group),
  ]);
  const last = groupBy.map((_, at) => (at === 0 ? "TOTAL" : ""));
  const head = [...groupBy.map((name) => name.toUpperCase()), ...SUM_COLUMNS];
  const table = formatTable(head, [...rows, [...last, ...sumCells(totals)]]);
  const { estimatedCalls, calls } = totals;
  const estimates = estimatedCalls === 0 ? "" : `tokens estimated: ${estimatedCalls} of ${calls} calls\n`;
  return `${table}from ${span}\n${estimates}`;
}

function sumCells(sums: z.infer<typeof sumsSchema>): string[] {
  const { calls, inputTokens, cachedInputTokens, outputTokens, reasoningTokens, costNanoDollars } = sums;
  const counts = [calls, inputTokens, cachedInputTokens, outputTokens, reasoningTokens];
  return [...counts.map(String), formatDollars(costNanoDollars)];
}

function callsTable(calls: readonly UsageCall[]): string {
  if (calls.length === 0) return "no calls that fit\n";
  const rows = calls.map((call) => [
    call.at,
    call.outcome,
    call.model ?? "-",
    call.upstream ?? "-",
    call.keyId ?? call.agentId ?? call.userId ?? "-",
    String(call.inputTokens),
    `${call.outputTokens}${call.estimated ? " (estimated)" : ""}`,
    formatDollars(call.costNanoDollars),
    `${(call.durationMs / 1000).toFixed(2)} s`,
    call.requestId,
  ]);
  const head = ["TIME", "OUTCOME", "MODEL", "UPSTREAM", "WHO", "INPUT", "OUTPUT", "COST", "TOOK", "REQUEST"];
  return formatTable(head, rows);
}

/** `2026-03-02T10:00:00.000Z` without what is nothing. */
function shortTime(time: string): string {
  return time.replace(/(T00:00)?(:00)?\.000Z$/, "").replace("T", " ");
}
