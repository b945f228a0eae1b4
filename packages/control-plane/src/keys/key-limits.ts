import { type KeyLimits, keyLimitsSchema } from "@fairlead/protocol/resources";
import { ONE_LINE } from "@fairlead/protocol/text";
import { z } from "zod";
import { MAX_NANO_DOLLARS } from "../billing/money.ts";

/** What a key or an agent may call and spend: as a caller sends it, as it rests, and how a change is merged into it. Pure. */

export const NO_LIMITS: KeyLimits = {
  modelAllowList: null,
  requestsPerMinute: null,
  tokensPerMinute: null,
  parallelCalls: null,
  budget: { total: null, daily: null, monthly: null },
};

const MAX_MODELS = 200;
const MAX_MODEL_NAME = 256;
const MAX_RATE = 1_000_000_000;

const rate = (description: string): z.ZodOptional<z.ZodNullable<z.ZodNumber>> =>
  z
    .int("must be a whole number")
    .min(1, "must be 1 or more, or null for no limit")
    .max(MAX_RATE, `must be at most ${MAX_RATE}`)
    .nullable()
    .optional()
    .describe(description);

/** An amount that some parser of JSON would round is refused, never changed (decisions/0013). */
const money = (description: string): z.ZodOptional<z.ZodNullable<z.ZodNumber>> =>
  z
    .int("must be a whole number of nano-dollars")
    .min(0, "must not be negative")
    .max(MAX_NANO_DOLLARS, `must be at most ${MAX_NANO_DOLLARS} nano-dollars`)
    .nullable()
    .optional()
    .describe(description);

/** `*` stands for all models of a provider, and for nothing else. */
const modelNameSchema = z
  .string()
  .max(MAX_MODEL_NAME, `must have at most ${MAX_MODEL_NAME} characters`)
  .regex(...ONE_LINE)
  .regex(/^(?:[^*]+|[^*/]+\/\*)$/, "must be a model's name, or `<provider>/*` for all of a provider");

/** Of a key or an agent that is made or changed: what is absent stays as it is, null lifts a limit. */
export const keyLimitsChangeSchema = z.strictObject({
  modelAllowList: z
    .array(modelNameSchema)
    .min(1, "must name a model; null allows every one")
    .max(MAX_MODELS, `must have at most ${MAX_MODELS} entries`)
    .nullable()
    .optional()
    .describe("The only models that it may call: names as callers send them, or `<provider>/*`. Null: all."),
  requestsPerMinute: rate("Calls in a minute."),
  tokensPerMinute: rate("Input and output tokens in a minute."),
  parallelCalls: rate("Calls that run at once."),
  budget: z
    .strictObject({
      total: money("In all."),
      daily: money("In a calendar day, UTC."),
      monthly: money("In a calendar month, UTC."),
    })
    .optional()
    .describe("What it may spend, in whole nano-dollars (10⁻⁹ USD). Null: no such limit."),
});
export type KeyLimitsChange = z.infer<typeof keyLimitsChangeSchema>;

export function mergeLimits(limits: KeyLimits, change: KeyLimitsChange): KeyLimits {
  const { modelAllowList, budget, ...rates } = change;
  return {
    ...limits,
    ...given(rates),
    ...(modelAllowList === undefined ? {} : { modelAllowList: modelAllowList && [...new Set(modelAllowList)] }),
    budget: { ...limits.budget, ...given(budget ?? {}) },
  };
}

/** @returns names of what differs, `budget.daily` for instance. */
export function changedLimits(before: KeyLimits, after: KeyLimits): readonly string[] {
  const [from, to] = [limitsByName(before), limitsByName(after)];
  return Object.keys(to).filter((name) => from[name] !== to[name]);
}

function limitsByName({ modelAllowList, budget, ...rates }: KeyLimits): Readonly<Record<string, unknown>> {
  const budgets = Object.entries(budget).map(([period, amount]) => [`budget.${period}`, amount]);
  return { modelAllowList: JSON.stringify(modelAllowList), ...rates, ...Object.fromEntries(budgets) };
}

type Given<T> = { [F in keyof T]?: Exclude<T[F], undefined> };

function given<T extends object>(fields: T): Given<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Given<T>;
}

/** As they rest: an older row lacks what a newer program adds. */
export function limitsFromText(text: string): KeyLimits {
  const stored = z
    .object({ budget: z.looseObject({}).default({}) })
    .loose()
    .parse(JSON.parse(text));
  return keyLimitsSchema.parse({ ...NO_LIMITS, ...stored, budget: { ...NO_LIMITS.budget, ...stored.budget } });
}

/** @param model as the caller names it. */
export function isAllowedModel(allowList: KeyLimits["modelAllowList"], model: string): boolean {
  if (allowList === null || allowList.includes(model)) return true;
  const slash = model.indexOf("/");
  return slash > 0 && slash < model.length - 1 && allowList.includes(`${model.slice(0, slash)}/*`);
}
