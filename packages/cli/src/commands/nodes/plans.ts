import { type Plan, type PlanSource, planSchema, planSourceSchema } from "@fairlead/protocol/plans";
import type { Command } from "commander";
import { z } from "zod";
import { UsageError } from "../../cli-error.ts";
import type { CommandContext } from "../../context.ts";
import {
  orTokenAdvice,
  PROVIDER_TOKEN_OPTION,
  type ProviderTokenOptions,
  readProviderToken,
} from "../../nodes/provider-token-input.ts";
import {
  addPlatformOptions,
  type ClientOptions,
  type PlatformConnection,
  platformHost,
} from "../../platform/client-options.ts";
import { callJson } from "../../platform/http-client.ts";
import { print } from "../../terminal/output.ts";
import { formatTable } from "../../terminal/table.ts";

interface PlanOptions extends ClientOptions, ProviderTokenOptions {
  readonly provider?: string;
  readonly refresh?: string;
}

const pageSchema = z.object({
  plans: z.array(planSchema),
  sources: z.array(planSourceSchema),
  nextPageToken: z.string().default(""),
});
type Known = Pick<z.output<typeof pageSchema>, "plans" | "sources">;

/** `fairlead plans`. */
export function addPlansCommand(program: Command, context: CommandContext): void {
  addPlatformOptions(program.command("plans"))
    .description("list the plans for rented machines, with prices and locations")
    .option("--provider <name>", "only plans of this provider")
    .option("--refresh <provider>", "get current plans from this provider, with your token")
    .option(...PROVIDER_TOKEN_OPTION)
    .addHelpText(
      "after",
      "\nExamples:\n  fairlead plans --provider hetzner\n  fairlead plans --refresh hetzner --provider-token-file token",
    )
    .action((options: PlanOptions) => showPlans(context, options));
}

async function showPlans(context: CommandContext, options: PlanOptions): Promise<void> {
  const host = platformHost(context, options);
  const { refresh, providerTokenFile } = options;
  if (refresh === undefined && providerTokenFile !== undefined) {
    throw new UsageError("--provider-token-file requires --refresh PROVIDER");
  }
  const known =
    refresh === undefined ? await listPlans(host, options) : await refreshPlans(context, host, { ...options, refresh });
  print(context.terminal, known, { json: options.json, text: ({ plans }) => planTable(plans) });
  if (options.json) return;
  for (const source of known.sources) context.terminal.note(sourceText(source));
}

async function listPlans(host: PlatformConnection, { provider }: PlanOptions): Promise<Known> {
  const plans: Plan[] = [];
  for (let pageToken = ""; ; ) {
    const query = new URLSearchParams({ pageSize: "200", pageToken, ...(provider === undefined ? {} : { provider }) });
    const page = await callJson(host, { path: `/v1/plans?${query.toString()}` }, pageSchema);
    plans.push(...page.plans);
    pageToken = page.nextPageToken;
    if (pageToken === "") return { plans, sources: page.sources };
  }
}

async function refreshPlans(
  context: CommandContext,
  host: PlatformConnection,
  { refresh: provider, ...options }: ProviderTokenOptions & { readonly refresh: string },
): Promise<Known> {
  const providerToken = await readProviderToken(context, options);
  const body = { provider, ...(providerToken === undefined ? {} : { providerToken }) };
  const call = { method: "POST", path: "/v1/plans:refresh", body } as const;
  return orTokenAdvice({ ...options, token: providerToken }, callJson(host, call, pageSchema));
}

function planTable(plans: readonly Plan[]): string {
  if (plans.length === 0)
    return "no plans: this platform has no machine provider, or --refresh is required to load the plans\n";
  const rows = plans.map((plan) => [
    plan.id,
    String(plan.cores),
    `${Math.round((plan.memoryMb / 1024) * 10) / 10} GB`,
    `${plan.diskGb} GB`,
    plan.gpu === null ? "" : `${plan.gpu.count} × ${plan.gpu.model}`,
    priceText(plan),
    plan.locations.map(({ name, available }) => (available ? name : `(${name})`)).join(" "),
  ]);
  return formatTable(["PLAN", "CORES", "MEMORY", "DISK", "GPU", "PER MONTH", "LOCATIONS"], rows);
}

/** The range from the cheapest to the most expensive location. */
function priceText({ monthlyPrice: lowest, locations }: Plan): string {
  if (lowest === null) return "";
  const amounts = locations.flatMap(({ monthlyPrice }) => (monthlyPrice === null ? [] : [Number(monthlyPrice.amount)]));
  const highest = locations.find(({ monthlyPrice }) => Number(monthlyPrice?.amount) === Math.max(...amounts));
  const [from, to] = [amountText(lowest), amountText(highest?.monthlyPrice ?? lowest)];
  return `${from === to ? from : `${from} to ${to}`} ${lowest.currency}`;
}

/** At least two decimal places. */
function amountText({ amount }: NonNullable<Plan["monthlyPrice"]>): string {
  const [whole = "", fraction = ""] = amount.split(".");
  return `${whole}.${fraction.padEnd(2, "0")}`;
}

function sourceText({ provider, from, at }: PlanSource): string {
  const day = at.slice(0, 10);
  return from === "catalogue"
    ? `${provider}: from the built-in catalogue of ${day}; get current data with --refresh ${provider}`
    : `${provider}: as of ${at}; locations in parentheses are out of stock`;
}
