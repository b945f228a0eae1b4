import { type Plan, type PlanSource, planSchema, planSourceSchema } from "@fairlead/protocol/plans";
import type { Command } from "commander";
import { z } from "zod";
import { UsageError } from "../cli-error.ts";
import { addPlatformOptions, type ClientOptions, type Platform, platformHost } from "../client-options.ts";
import type { Context } from "../context.ts";
import { callJson } from "../http-client.ts";
import {
  orTokenAdvice,
  PROVIDER_TOKEN_OPTION,
  type ProviderTokenOptions,
  readProviderToken,
} from "../nodes/provider-token-input.ts";
import { print } from "../output.ts";
import { formatTable } from "../table.ts";

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
export function addPlansCommand(program: Command, context: Context): void {
  addPlatformOptions(program.command("plans"))
    .description("list machine types that a node can be created on, with their prices and places")
    .option("--provider <name>", "of this provider alone")
    .option("--refresh <provider>", "ask this provider, with a token of yours")
    .option(...PROVIDER_TOKEN_OPTION)
    .addHelpText(
      "after",
      "\nExamples:\n  fairlead plans --provider hetzner\n  fairlead plans --refresh hetzner --provider-token-file token",
    )
    .action((options: PlanOptions) => showPlans(context, options));
}

async function showPlans(context: Context, options: PlanOptions): Promise<void> {
  const host = platformHost(context, options);
  const { refresh, providerTokenFile } = options;
  if (refresh === undefined && providerTokenFile !== undefined) {
    throw new UsageError("say which provider is to be asked with that token: --refresh PROVIDER");
  }
  const known =
    refresh === undefined ? await listPlans(host, options) : await refreshPlans(context, host, { ...options, refresh });
  print(context.terminal, known, { json: options.json, text: ({ plans }) => planTable(plans) });
  if (options.json) return;
  for (const source of known.sources) context.terminal.note(sourceText(source));
}

async function listPlans(host: Platform, { provider }: PlanOptions): Promise<Known> {
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
  context: Context,
  host: Platform,
  { refresh: provider, ...options }: ProviderTokenOptions & { readonly refresh: string },
): Promise<Known> {
  const providerToken = await readProviderToken(context, options);
  const body = { provider, ...(providerToken === undefined ? {} : { providerToken }) };
  const call = { method: "POST", path: "/v1/plans:refresh", body } as const;
  return orTokenAdvice({ ...options, token: providerToken }, callJson(host, call, pageSchema));
}

function planTable(plans: readonly Plan[]): string {
  if (plans.length === 0)
    return "no plans: this platform offers no machines, or its providers must be asked with --refresh\n";
  const rows = plans.map((plan) => [
    plan.id,
    String(plan.cores),
    `${Math.round((plan.memoryMb / 1024) * 10) / 10} GB`,
    `${plan.diskGb} GB`,
    plan.gpu === null ? "" : `${plan.gpu.count} × ${plan.gpu.model}`,
    priceText(plan),
    plan.locations.map(({ name, available }) => (available ? name : `(${name})`)).join(" "),
  ]);
  return formatTable(["PLAN", "CORES", "MEMORY", "DISK", "GPU", "A MONTH", "PLACES"], rows);
}

/** What it costs where it is cheapest, and where it costs most. */
function priceText({ monthlyPrice: lowest, locations }: Plan): string {
  if (lowest === null) return "";
  const amounts = locations.flatMap(({ monthlyPrice }) => (monthlyPrice === null ? [] : [Number(monthlyPrice.amount)]));
  const highest = locations.find(({ monthlyPrice }) => Number(monthlyPrice?.amount) === Math.max(...amounts));
  const [from, to] = [amountText(lowest), amountText(highest?.monthlyPrice ?? lowest)];
  return `${from === to ? from : `${from} to ${to}`} ${lowest.currency}`;
}

/** At least two places of the fraction. */
function amountText({ amount }: NonNullable<Plan["monthlyPrice"]>): string {
  const [whole = "", fraction = ""] = amount.split(".");
  return `${whole}.${fraction.padEnd(2, "0")}`;
}

function sourceText({ provider, from, at }: PlanSource): string {
  const day = at.slice(0, 10);
  return from === "catalogue"
    ? `${provider}: from the catalogue of ${day}; --refresh ${provider} asks for what holds now`
    : `${provider}: as it said at ${at}; places in brackets have no stock`;
}
