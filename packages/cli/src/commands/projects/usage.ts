import { type Command, InvalidArgumentError, Option } from "commander";
import { z } from "zod";
import { UsageError } from "../../cli-error.ts";
import type { CommandContext } from "../../context.ts";
import { readMoment } from "../../input/moment.ts";
import { formatDollarAmount } from "../../input/money.ts";
import {
  addPlatformOptions,
  addProjectOption,
  type ClientOptions,
  type PlatformConnection,
  platformHost,
} from "../../platform/client-options.ts";
import { callJson } from "../../platform/http-client.ts";
import { addLimitOption, type ListOptions, listAll } from "../../terminal/list-all.ts";
import { print } from "../../terminal/output.ts";
import { formatTable } from "../../terminal/table.ts";

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
  other: sumsSchema.nullable(),
  nextPageToken: z.string(),
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

/** `--by` name to the group's field. */
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

/** The list of calls can be arbitrarily long. */
const NEWEST = 50;

export function addUsageCommand(program: Command, context: CommandContext): void {
  addLimitOption(addProjectOption(addPlatformOptions(program.command("usage"))), NEWEST)
    .description("show a project's usage and cost; days and hours are in UTC")
    .option("--from <time>", "start time: 7d (ago), 2026-12-31 or 2026-12-31T18:00:00Z (default: 30 days ago)")
    .option("--to <time>", "end time (exclusive); a date includes the whole day")
    .option("--by <names>", `group by: ${Object.keys(FIELDS).join(", ")} (default: day)`, parseNames)
    .addOption(new Option("--calls", "list single calls, newest first, instead of totals").conflicts("by"))
    .option("--key <id>", "with --calls: only calls with this key")
    .option("--agent <id>", "with --calls: only calls of this agent")
    .option("--model <name>", "with --calls: only calls of this model")
    .option("--outcome <name>", "with --calls: only calls with this outcome, such as ok or rate_limit_exceeded")
    .addHelpText(
      "after",
      "\nExamples:\n  fairlead usage --from 7d --by model,day\n  fairlead usage --calls --outcome insufficient_balance --json",
    )
    .action((options: UsageOptions) => (options.calls ? showCalls(context, options) : showSums(context, options)));
}

function parseNames(text: string): readonly string[] {
  const names = text.split(",").map((name) => name.trim());
  if (names.every((name) => Object.hasOwn(FIELDS, name))) return names;
  throw new InvalidArgumentError(`Must be a comma-separated list of ${Object.keys(FIELDS).join(", ")}.`);
}

function spanOf({ clock }: CommandContext, { from, to }: UsageOptions): Readonly<Record<string, string | undefined>> {
  const now = clock.now();
  return {
    from: from && readMoment(from, { now, durations: "ago", days: "begin" }),
    to: to && readMoment(to, { now, durations: "ago", days: "end" }),
  };
}

async function showSums(context: CommandContext, options: UsageOptions): Promise<void> {
  if (options.key ?? options.agent ?? options.model ?? options.outcome) {
    throw new UsageError(
      "--key, --agent, --model and --outcome require --calls; to group totals, use --by key,agent,model,outcome",
    );
  }
  const host = platformHost(context, options);
  const query = { ...spanOf(context, options), groupBy: options.by?.join(",") };
  const set = Object.entries(query).filter((entry): entry is [string, string] => Boolean(entry[1]));
  const page = (pageToken: string): Promise<Report> => {
    const params = new URLSearchParams(pageToken === "" ? set : [...set, ["pageToken", pageToken]]);
    return callJson(host, { path: `${host.projectPath()}/usage?${params.toString()}` }, reportSchema);
  };
  const first = await page("");
  const groups = [...first.groups];
  for (let token = first.nextPageToken; token !== ""; ) {
    const next = await page(token);
    groups.push(...next.groups);
    token = next.nextPageToken;
  }
  const report = { ...first, groups, nextPageToken: "" };
  print(context.terminal, report, { json: options.json, text: sumsTable });
}

async function showCalls(context: CommandContext, options: UsageOptions): Promise<void> {
  const host: PlatformConnection = platformHost(context, options);
  const { key: keyId, agent: agentId, model, outcome } = options;
  const query = { ...spanOf(context, options), keyId, agentId, model, outcome };
  const list = { path: `${host.projectPath()}/usage/calls`, field: "calls", item: callSchema, query };
  const calls = await listAll(host, list, options);
  print(context.terminal, { calls }, { json: options.json, text: (answer) => callsTable(answer.calls) });
}

const SUM_COLUMNS = ["CALLS", "INPUT", "CACHED", "OUTPUT", "REASONING", "COST"];

function sumsTable({ from, to, groupBy, totals, groups, other }: Report): string {
  const span = `${shortTime(from)} to ${shortTime(to)} UTC`;
  if (groups.length === 0) return `no calls from ${span}\n`;
  const rows = groups.map((group) => [
    ...groupBy.map((name) => String(group[FIELDS[name] ?? name] ?? "-")),
    ...sumCells(group),
  ]);
  const named = (name: string): string[] => groupBy.map((_, at) => (at === 0 ? name : ""));
  const rest = other === null ? [] : [[...named("OTHER"), ...sumCells(other)]];
  const head = [...groupBy.map((name) => name.toUpperCase()), ...SUM_COLUMNS];
  const table = formatTable(head, [...rows, ...rest, [...named("TOTAL"), ...sumCells(totals)]]);
  const { estimatedCalls, calls } = totals;
  const estimates = estimatedCalls === 0 ? "" : `tokens estimated: ${estimatedCalls} of ${calls} calls\n`;
  return `${table}from ${span}\n${estimates}`;
}

function sumCells(sums: z.infer<typeof sumsSchema>): string[] {
  const { calls, inputTokens, cachedInputTokens, outputTokens, reasoningTokens, costNanoDollars } = sums;
  const counts = [calls, inputTokens, cachedInputTokens, outputTokens, reasoningTokens];
  return [...counts.map(String), formatDollarAmount(costNanoDollars)];
}

function callsTable(calls: readonly UsageCall[]): string {
  if (calls.length === 0) return "no matching calls\n";
  const rows = calls.map((call) => [
    call.at,
    call.outcome,
    call.model ?? "-",
    call.upstream ?? "-",
    call.keyId ?? call.agentId ?? call.userId ?? "-",
    String(call.inputTokens),
    `${call.outputTokens}${call.estimated ? " (estimated)" : ""}`,
    formatDollarAmount(call.costNanoDollars),
    `${(call.durationMs / 1000).toFixed(2)} s`,
    call.requestId,
  ]);
  const head = ["TIME", "OUTCOME", "MODEL", "UPSTREAM", "WHO", "INPUT", "OUTPUT", "COST", "DURATION", "REQUEST"];
  return formatTable(head, rows);
}

/** Drops the zero parts of `2026-03-02T10:00:00.000Z`. */
function shortTime(time: string): string {
  return time.replace(/(T00:00)?(:00)?\.000Z$/, "").replace("T", " ");
}
