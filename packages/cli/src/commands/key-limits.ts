import type { AgentLimits, KeyLimits } from "@fairlead/protocol/resources";
import { type Command, InvalidArgumentError, Option } from "commander";
import { formatDollars, parseDollars } from "../money.ts";

/** What a key or an agent may do and spend: as options of their commands, as fields of the API, and as text. */

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

/** Not null yet: commander takes that for an empty text. */
type LimitOption = number | "none";

/** Null lifts a limit; what is not there stays as it is. */
export type LimitFields = { readonly [F in Exclude<keyof KeyLimits, "budget">]?: KeyLimits[F] } & {
  readonly budget?: Partial<KeyLimits["budget"]>;
};

export function addLimitOptions(command: Command): Command {
  const model = new Option("--model <provider/model>", "allow this model (or `provider/*`) and no other; repeat it");
  return command
    .addOption(model.argParser(collect))
    .addOption(new Option("--all-models", "allow every model of the project").conflicts("model"))
    .option("--requests-per-minute <number>", "a whole number, or none", parseLimit)
    .option("--tokens-per-minute <number>", "a whole number, or none", parseLimit)
    .option("--parallel-calls <number>", "a whole number, or none", parseLimit)
    .option("--budget-total <dollars>", "all that it may ever spend: 25, 0.50, or none", parseBudget)
    .option("--budget-daily <dollars>", "the same for a calendar day (UTC)", parseBudget)
    .option("--budget-monthly <dollars>", "the same for a calendar month (UTC)", parseBudget);
}

/** @returns undefined where nothing was given. */
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
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError("Write a whole number of 1 or more, or none.");
  return Number(text);
}

function parseBudget(text: string): LimitOption {
  if (text === "none") return text;
  const nanoDollars = parseDollars(text);
  if (nanoDollars === null) throw new InvalidArgumentError("Write dollars, such as 25 or 0.50, or none.");
  return nanoDollars;
}

/** One line for each limit that there is. */
export function describeLimits(limits: KeyLimits): string[] {
  const { modelAllowList, requestsPerMinute, tokensPerMinute, parallelCalls, budget } = limits;
  const each = (value: number | null, unit: string): string[] => (value ? [`${value} ${unit}`] : []);
  const money = (value: number | null, period: string): string[] =>
    value === null ? [] : [`${formatDollars(value)} ${period}`];
  return [
    ...(modelAllowList ?? []),
    ...each(requestsPerMinute, "requests/min"),
    ...each(tokensPerMinute, "tokens/min"),
    ...each(parallelCalls, "at once"),
    ...money(budget.total, "in all"),
    ...money(budget.daily, "a day"),
    ...money(budget.monthly, "a month"),
  ];
}

/** "" where nothing was spent yet. */
export function describeSpent({ total, daily, monthly }: AgentLimits["spent"]): string {
  if (total === 0) return "";
  return `${formatDollars(daily)} today, ${formatDollars(monthly)} this month, ${formatDollars(total)} in all`;
}
