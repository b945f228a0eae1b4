import { NO_LIMITS } from "@fairlead/protocol/key-limits";
import { type KeyLimits, keyLimitsSchema } from "@fairlead/protocol/resources";
import { MAX_NANO_DOLLARS } from "@fairlead/protocol/values/money";
import { ONE_LINE } from "@fairlead/protocol/values/text";
import { z } from "zod";

/** Limits of keys and agents: input, storage and merging of changes. Pure. */

const MAX_MODELS = 200;
const MAX_MODEL_NAME = 256;
const MAX_RATE = 1_000_000_000;

const rate = (description: string): z.ZodOptional<z.ZodNullable<z.ZodNumber>> =>
  z
    .int("must be an integer")
    .min(1, "must be 1 or more, or null for no limit")
    .max(MAX_RATE, `must be at most ${MAX_RATE}`)
    .nullable()
    .optional()
    .describe(description);

/** Amounts that some JSON parser would round are rejected (decisions/0013). */
const money = (description: string): z.ZodOptional<z.ZodNullable<z.ZodNumber>> =>
  z
    .int("must be an integer number of nano-dollars")
    .min(0, "must not be negative")
    .max(MAX_NANO_DOLLARS, `must be at most ${MAX_NANO_DOLLARS} nano-dollars`)
    .nullable()
    .optional()
    .describe(description);

/** `*` is only valid as `<provider>/*`. */
const modelNameSchema = z
  .string()
  .max(MAX_MODEL_NAME, `must have at most ${MAX_MODEL_NAME} characters`)
  .regex(...ONE_LINE)
  .regex(/^(?:[^*]+|[^*/]+\/\*)$/, "must be a model name, or `<provider>/*` for all models of a provider");

/** For creating and changing: omitted fields are unchanged, null removes a limit. */
export const keyLimitsChangeSchema = z.strictObject({
  modelAllowList: z
    .array(modelNameSchema)
    .min(1, "must name at least one model; null allows all models")
    .max(MAX_MODELS, `must have at most ${MAX_MODELS} entries`)
    .nullable()
    .optional()
    .describe("The only models that can be called: names as callers send them, or `<provider>/*`. Null: all."),
  requestsPerMinute: rate("Requests per minute."),
  tokensPerMinute: rate("Input and output tokens per minute."),
  parallelCalls: rate("Concurrent calls."),
  budget: z
    .strictObject({
      total: money("In total."),
      daily: money("Per calendar day (UTC)."),
      monthly: money("Per calendar month (UTC)."),
    })
    .optional()
    .describe("Maximum spend in integer nano-dollars (10⁻⁹ USD). Null: no limit."),
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

/** @returns names of changed fields, for instance `budget.daily`. */
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

/** Stored form: rows of older versions lack newer fields. */
export function limitsFromText(text: string): KeyLimits {
  const stored = z
    .object({ budget: z.looseObject({}).default({}) })
    .loose()
    .parse(JSON.parse(text));
  return keyLimitsSchema.parse({ ...NO_LIMITS, ...stored, budget: { ...NO_LIMITS.budget, ...stored.budget } });
}
