import type { AgentLimits, KeyLimits } from "@fairlead/protocol/resources";
import { type Command, InvalidArgumentError, Option } from "commander";
import { formatDollarAmount, parseDollars } from "../../input/money.ts";

/** Limits of a key or an agent, as command options, API fields and text. */

export interface LimitOptions {
  readonly model?: readonly string[];
  readonly allModels?: boolean;
  readonly requestsPerMinute?: LimitOption;
  readonly tokensPerMinute?: LimitOption;
  readonly parallelCalls?: LimitOption;
  /** Nano-dollars. */
  readonly budgetTotal?: LimitOption;
  readonly budgetDaily?: LimitOption;
  readonly budgetMonthly?: LimitOption;
}

/** "none", because commander treats null as an empty string. */
type LimitOption = number | "none";

/** Null removes a limit; omitted limits are unchanged. */
export type LimitFields = { readonly [F in Exclude<keyof KeyLimits, "budget">]?: KeyLimits[F] } & {
  readonly budget?: Partial<KeyLimits["budget"]>;
};

export function addLimitOptions(command: Command): Command {
  const model = new Option("--model <provider/model>", "allow only this model (or `provider/*`); repeatable");
  return command
    .addOption(model.argParser(collect))
    .addOption(new Option("--all-models", "allow all models of the project").conflicts("model"))
    .option("--requests-per-minute <number>", "an integer, or none", parseLimit)
    .option("--tokens-per-minute <number>", "an integer, or none", parseLimit)
    .option("--parallel-calls <number>", "an integer, or none", parseLimit)
    .option("--budget-total <dollars>", "maximum total spend in dollars: 25, 0.50, or none", parseBudget)
    .option("--budget-daily <dollars>", "maximum spend per calendar day (UTC)", parseBudget)
    .option("--budget-monthly <dollars>", "maximum spend per calendar month (UTC)", parseBudget);
}

/** @returns undefined if no option was given. */
export function limitFields(options: LimitOptions): LimitFields | undefined {
  const { model, allModels } = options;
  const budget = given({
    total: lifted(options.budgetTotal),
    daily: lifted(options.budgetDaily),
    monthly: lifted(options.budgetMonthly),
  });
  const limits = given({
    modelAllowList: allModels ? null : model && [...model],
    requestsPerMinute: lifted(options.requestsPerMinute),
    tokensPerMinute: lifted(options.tokensPerMinute),
    parallelCalls: lifted(options.parallelCalls),
    budget: unlessEmpty(budget),
  });
  return unlessEmpty(limits);
}

function unlessEmpty<T extends object>(fields: T): T | undefined {
  return Object.keys(fields).length === 0 ? undefined : fields;
}

function lifted(option: LimitOption | undefined): number | null | undefined {
  return option === "none" ? null : option;
}

type Given<T> = { [F in keyof T]?: Exclude<T[F], undefined> };

function given<T extends object>(fields: T): Given<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Given<T>;
}

function collect(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text];
}

function parseLimit(text: string): LimitOption {
  if (text === "none") return text;
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError("Must be an integer of 1 or more, or none.");
  return Number(text);
}

function parseBudget(text: string): LimitOption {
  if (text === "none") return text;
  const nanoDollars = parseDollars(text);
  if (nanoDollars === null)
    throw new InvalidArgumentError("Must be an amount in dollars, such as 25 or 0.50, or none.");
  return nanoDollars;
}

/** One entry per limit that is set. */
export function describeLimits(limits: KeyLimits): string[] {
  const { modelAllowList, requestsPerMinute, tokensPerMinute, parallelCalls, budget } = limits;
  const each = (value: number | null, unit: string): string[] => (value ? [`${value} ${unit}`] : []);
  const money = (value: number | null, period: string): string[] =>
    value === null ? [] : [`${formatDollarAmount(value)} ${period}`];
  return [
    ...(modelAllowList ?? []),
    ...each(requestsPerMinute, "requests/min"),
    ...each(tokensPerMinute, "tokens/min"),
    ...each(parallelCalls, "parallel calls"),
    ...money(budget.total, "total"),
    ...money(budget.daily, "per day"),
    ...money(budget.monthly, "per month"),
  ];
}

/** "" if nothing was spent. */
export function describeSpent({ total, daily, monthly }: AgentLimits["spent"]): string {
  if (total === 0) return "";
  return `${formatDollarAmount(daily)} today, ${formatDollarAmount(monthly)} this month, ${formatDollarAmount(total)} total`;
}
