import { rfc3339 } from "@fairlead/protocol/values/clock";
import { z } from "zod";

/** Usage records of calls, and totals. Never their content. Pure. */

/** Times are Unix milliseconds, `cost` is nano-dollars. */
export interface UsageRecord extends UsageCounts {
  readonly id: string;
  readonly projectId: string;
  /** The request id returned to the caller. */
  readonly requestId: string;
  /** When it ended, which determines its hour and day. */
  readonly at: number;
  /** Null for a call without a project key. */
  readonly keyId: string | null;
  /** The user who created the key or sent the chat; null for an agent. */
  readonly userId: string | null;
  /** The agent, for a call with a worker-plane token. */
  readonly agentId: string | null;
  /** As the caller named it, or the default. */
  readonly model: string | null;
  readonly upstream: string | null;
  readonly dialect: string;
  readonly stream: boolean;
  /** `CallOutcome`. */
  readonly outcome: string;
  readonly status: number | null;
  /** Whether the tokens are our estimate. */
  readonly estimated: boolean;
  readonly attempts: number;
  readonly overheadMs: number | null;
  readonly firstTokenMs: number | null;
  readonly durationMs: number;
}

/** The summable values. */
export interface UsageCounts {
  readonly inputTokens: number;
  readonly cachedInputTokens: number;
  readonly outputTokens: number;
  readonly reasoningTokens: number;
  readonly cost: number;
}

export interface UsageSums extends UsageCounts {
  readonly calls: number;
  /** The number of calls with estimated tokens. */
  readonly estimatedCalls: number;
}

export const NOTHING_USED: UsageSums = {
  calls: 0,
  estimatedCalls: 0,
  inputTokens: 0,
  cachedInputTokens: 0,
  outputTokens: 0,
  reasoningTokens: 0,
  cost: 0,
};

export function addSums(a: UsageSums, b: UsageSums): UsageSums {
  return {
    calls: a.calls + b.calls,
    estimatedCalls: a.estimatedCalls + b.estimatedCalls,
    inputTokens: a.inputTokens + b.inputTokens,
    cachedInputTokens: a.cachedInputTokens + b.cachedInputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    reasoningTokens: a.reasoningTokens + b.reasoningTokens,
    cost: a.cost + b.cost,
  };
}

export function sumsOf(record: UsageRecord): UsageSums {
  const { inputTokens, cachedInputTokens, outputTokens, reasoningTokens, cost, estimated } = record;
  const counts = { inputTokens, cachedInputTokens, outputTokens, reasoningTokens, cost };
  return { calls: 1, estimatedCalls: estimated ? 1 : 0, ...counts };
}

/** Longer than any configured name. */
export const MOST_MODEL_CHARACTERS = 300;

/** The stored form of a model name: upstreams that accept any name get arbitrary text, which not every store can hold. */
export function recordedModel(name: string): string {
  return name
    .slice(0, MOST_MODEL_CHARACTERS)
    .toWellFormed()
    .replaceAll(/\p{Cc}/gu, "\ufffd");
}

/** Dimensions of totals. Days and hours are in UTC. */
export const USAGE_DIMENSIONS = ["day", "hour", "model", "key", "user", "agent", "upstream", "outcome"] as const;
export type UsageDimension = (typeof USAGE_DIMENSIONS)[number];

/** The field of a group for each dimension. */
export const DIMENSION_FIELDS = {
  day: "day",
  hour: "hour",
  model: "model",
  key: "keyId",
  user: "userId",
  agent: "agentId",
  upstream: "upstream",
  outcome: "outcome",
} as const satisfies Record<UsageDimension, string>;

/** `values`: in the order of the requested dimensions; days and hours are Unix milliseconds, null is none. */
export interface UsageGroup {
  readonly values: readonly (string | number | null)[];
  readonly sums: UsageSums;
}

export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;

export function hourOf(at: number): number {
  return at - (at % HOUR_MS);
}

const DEFAULT_DAYS = 30;

export interface UsageRange {
  readonly from: number;
  readonly to: number;
}

/** Widened to whole hours, because totals are stored per hour. Default: the last 30 days, including today. */
export function wholeHours(
  asked: { readonly from?: number | undefined; readonly to?: number | undefined },
  now: number,
): UsageRange {
  const to = hourOf((asked.to ?? now + 1) + HOUR_MS - 1);
  const from = asked.from ?? to - 1 - ((to - 1) % DAY_MS) - (DEFAULT_DAYS - 1) * DAY_MS;
  return { from: hourOf(from), to };
}

const count = z.number().int();
const sumsShape = {
  calls: count,
  estimatedCalls: count.describe("The number of calls with estimated tokens, because the upstream reported no usage."),
  inputTokens: count,
  cachedInputTokens: count.describe("The part of the input that the upstream read from its cache."),
  outputTokens: count.describe("Including reasoning."),
  reasoningTokens: count.describe("The part of the output that is reasoning."),
  costNanoDollars: count,
};

export const usageSumsSchema = z.object(sumsShape).meta({ id: "UsageSums" });

export const usageGroupSchema = z
  .object({
    day: z.string().optional().describe("`2026-03-02`, UTC."),
    hour: z.string().optional().describe("The start of the hour, in UTC."),
    model: z
      .string()
      .nullable()
      .optional()
      .describe("As named by the caller. Null if the call failed before the model was read."),
    keyId: z.string().nullable().optional().describe("Null: a call without a project key."),
    userId: z
      .string()
      .nullable()
      .optional()
      .describe("The user who created the key or sent the chat. Null for an agent."),
    agentId: z.string().nullable().optional().describe("Null: a call without a worker-plane token."),
    upstream: z.string().nullable().optional().describe("The upstream that responded or was called last. Null: none."),
    outcome: z.string().optional().describe("`ok`, `rejected`, `client_left`, or an error code."),
    ...sumsShape,
  })
  .meta({ id: "UsageGroup" });

export function toUsageSums({ cost, ...sums }: UsageSums): z.infer<typeof usageSumsSchema> {
  return { ...sums, costNanoDollars: cost };
}

export function toUsageGroup(
  dimensions: readonly UsageDimension[],
  { values, sums }: UsageGroup,
): z.infer<typeof usageGroupSchema> {
  const told = dimensions.map((dimension, at) => [
    DIMENSION_FIELDS[dimension],
    tellValue(dimension, values[at] ?? null),
  ]);
  return { ...Object.fromEntries(told), ...toUsageSums(sums) };
}

function tellValue(dimension: UsageDimension, value: string | number | null): string | null {
  if (typeof value !== "number") return value;
  return dimension === "day" ? rfc3339(value).slice(0, 10) : rfc3339(value);
}

export const usageCallSchema = z
  .object({
    requestId: z.string().describe("The `x-request-id` of the response."),
    at: z.string().describe("When it ended."),
    keyId: z.string().nullable(),
    userId: z.string().nullable(),
    agentId: z.string().nullable(),
    model: z.string().nullable(),
    upstream: z.string().nullable(),
    dialect: z.string(),
    stream: z.boolean(),
    outcome: z.string(),
    status: z.number().nullable(),
    inputTokens: count,
    cachedInputTokens: count,
    outputTokens: count,
    reasoningTokens: count,
    estimated: z.boolean(),
    costNanoDollars: count,
    attempts: count.describe("The number of attempts sent to upstreams."),
    overheadMs: z.number().nullable().describe("Time that this host spent on the call up to the response headers."),
    firstTokenMs: z.number().nullable(),
    durationMs: z.number(),
  })
  .meta({
    id: "UsageCall",
    examples: [
      {
        requestId: "req_01kc3b6q2v8r5x0m7n4t9w1yza",
        at: "2026-03-02T09:31:12.000Z",
        keyId: "key_01kc3b6q2v8r5x0m7n4t9w1yzc",
        userId: "usr_01kc3b6q2v8r5x0m7n4t9w1yzb",
        agentId: null,
        model: "local/tinychat-6m",
        upstream: "node:local",
        dialect: "chat",
        stream: true,
        outcome: "ok",
        status: 200,
        inputTokens: 812,
        cachedInputTokens: 768,
        outputTokens: 164,
        reasoningTokens: 0,
        estimated: false,
        costNanoDollars: 41_300,
        attempts: 1,
        overheadMs: 0.412,
        firstTokenMs: 96,
        durationMs: 1840,
      },
    ],
  });

export function toUsageCall(record: UsageRecord): z.infer<typeof usageCallSchema> {
  const { id: _, projectId: __, at, cost, ...rest } = record;
  return { ...rest, at: rfc3339(at), costNanoDollars: cost };
}
