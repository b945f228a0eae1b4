import type { KeyLimits, ProjectLimits } from "@fairlead/protocol/resources";
import { z } from "zod";

/** Rate limits of a project; null: no limit. Pure. */
export type CallLimits = Pick<KeyLimits, "requestsPerMinute" | "tokensPerMinute" | "parallelCalls">;

export const NO_CALL_LIMITS: CallLimits = { requestsPerMinute: null, tokensPerMinute: null, parallelCalls: null };

export const LIMIT_NAMES = [
  "requestsPerMinute",
  "tokensPerMinute",
  "parallelCalls",
] as const satisfies readonly (keyof CallLimits)[];

const MAX_LIMIT = 1_000_000_000;

const limit = z.int("must be an integer").min(1, "must be 1 or more").max(MAX_LIMIT, `must be at most ${MAX_LIMIT}`);
const ownLimit = (description: string): z.ZodOptional<z.ZodNullable<typeof limit>> =>
  limit.nullable().optional().describe(description);

/** Omitted fields are unchanged; null: the server's limit. */
export const projectLimitsChangeSchema = z.strictObject({
  requestsPerMinute: ownLimit("Requests per minute."),
  tokensPerMinute: ownLimit("Input and output tokens per minute."),
  parallelCalls: ownLimit("Concurrent calls."),
});
export type ProjectLimitsChange = z.infer<typeof projectLimitsChangeSchema>;

const serverLimit = (what: string): z.ZodOptional<typeof limit> =>
  limit.optional().describe(`${what} Default: no limit.`);

/** In the server's settings. */
export const serverLimitsSchema = z
  .strictObject({
    requestsPerMinute: serverLimit("Requests per minute of one project, across all its keys."),
    tokensPerMinute: serverLimit("Input and output tokens per minute of one project."),
    parallelCalls: serverLimit("Concurrent calls of one project."),
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

/** The limits in effect: the project's, otherwise the server's. */
export function effectiveLimits(own: CallLimits, server: CallLimits): CallLimits {
  return {
    requestsPerMinute: own.requestsPerMinute ?? server.requestsPerMinute,
    tokensPerMinute: own.tokensPerMinute ?? server.tokensPerMinute,
    parallelCalls: own.parallelCalls ?? server.parallelCalls,
  };
}

/** @returns the limits above the server's, which only the operator can allow. */
export function widened(change: ProjectLimitsChange, server: CallLimits): readonly (keyof CallLimits)[] {
  return LIMIT_NAMES.filter((name) => (change[name] ?? 0) > (server[name] ?? Number.POSITIVE_INFINITY));
}

export function toProjectLimits(own: CallLimits, server: CallLimits): ProjectLimits {
  return { ...own, effective: effectiveLimits(own, server) };
}
