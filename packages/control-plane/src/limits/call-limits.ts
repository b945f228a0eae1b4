import type { KeyLimits, ProjectLimits } from "@fairlead/protocol/resources";
import { z } from "zod";

/** How many calls a project may make, and how large; null: no such limit. Pure. */
export type CallLimits = Pick<KeyLimits, "requestsPerMinute" | "tokensPerMinute" | "parallelCalls">;

export const NO_CALL_LIMITS: CallLimits = { requestsPerMinute: null, tokensPerMinute: null, parallelCalls: null };

export const LIMIT_NAMES = [
  "requestsPerMinute",
  "tokensPerMinute",
  "parallelCalls",
] as const satisfies readonly (keyof CallLimits)[];

const MAX_LIMIT = 1_000_000_000;

const limit = z
  .int("must be a whole number")
  .min(1, "must be 1 or more")
  .max(MAX_LIMIT, `must be at most ${MAX_LIMIT}`);
const ownLimit = (description: string): z.ZodOptional<z.ZodNullable<typeof limit>> =>
  limit.nullable().optional().describe(description);

/** What is absent stays as it is; null: the server's. */
export const projectLimitsChangeSchema = z.strictObject({
  requestsPerMinute: ownLimit("Calls in a minute."),
  tokensPerMinute: ownLimit("Input and output tokens in a minute."),
  parallelCalls: ownLimit("Calls that run at once."),
});
export type ProjectLimitsChange = z.infer<typeof projectLimitsChangeSchema>;

const serverLimit = (what: string): z.ZodOptional<typeof limit> =>
  limit.optional().describe(`${what} Default: no limit.`);

/** In the server's settings. */
export const serverLimitsSchema = z
  .strictObject({
    requestsPerMinute: serverLimit("Calls in a minute that one project may make, all its keys together."),
    tokensPerMinute: serverLimit("Input and output tokens of them in a minute."),
    parallelCalls: serverLimit("Calls of one project at the same time."),
  })
  .prefault({});

export function serverLimits(settings: z.infer<typeof serverLimitsSchema>): CallLimits {
  const { requestsPerMinute = null, tokensPerMinute = null, parallelCalls = null } = settings;
  return { requestsPerMinute, tokensPerMinute, parallelCalls };
}

export function changeLimits(own: CallLimits, change: ProjectLimitsChange): CallLimits {
  const {
    requestsPerMinute = own.requestsPerMinute,
    tokensPerMinute = own.tokensPerMinute,
    parallelCalls = own.parallelCalls,
  } = change;
  return { requestsPerMinute, tokensPerMinute, parallelCalls };
}

/** What counts: the project's own limit, and where it has none the server's. */
export function effectiveLimits(own: CallLimits, server: CallLimits): CallLimits {
  return {
    requestsPerMinute: own.requestsPerMinute ?? server.requestsPerMinute,
    tokensPerMinute: own.tokensPerMinute ?? server.tokensPerMinute,
    parallelCalls: own.parallelCalls ?? server.parallelCalls,
  };
}

/** @returns the limits of a change that are wider than the server's: who runs the server alone may allow them. */
export function widened(change: ProjectLimitsChange, server: CallLimits): readonly (keyof CallLimits)[] {
  return LIMIT_NAMES.filter((name) => (change[name] ?? 0) > (server[name] ?? Number.POSITIVE_INFINITY));
}

export function toProjectLimits(own: CallLimits, server: CallLimits): ProjectLimits {
  return { ...own, effective: effectiveLimits(own, server) };
}
