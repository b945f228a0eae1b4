import { rfc3339 } from "@fairlead/protocol/clock";
import { ONE_LINE } from "@fairlead/protocol/text";
import type { FastifySchema } from "fastify";
import { z } from "zod";
import { moment, reference } from "../http/fields.ts";
import { pageQuery, paginate } from "../http/pagination.ts";
import type { PlatformApp } from "../http/platform-host.ts";
import { principalOf, requirePrincipal } from "../http/require-principal.ts";
import {
  MOST_MODEL_CHARACTERS,
  toUsageCall,
  toUsageGroup,
  toUsageSums,
  USAGE_DIMENSIONS,
  usageCallSchema,
  usageGroupSchema,
  usageSumsSchema,
} from "./usage.ts";
import type { UsageService } from "./usage-service.ts";

const tags = ["Usage"];
const params = z.object({ id: reference("The project's id.") });

const groupBy = z
  .string()
  .max(100)
  .default("day")
  .transform((text) => text.split(","))
  .pipe(
    z
      .array(z.enum(USAGE_DIMENSIONS, { error: `must be names of ${USAGE_DIMENSIONS.join(", ")}, parted by commas` }))
      .refine((names) => new Set(names).size === names.length, "must name nothing twice"),
  )
  .describe(
    `What the sums are told apart by: of ${USAGE_DIMENSIONS.join(", ")}, parted by commas. Days and hours are UTC.`,
  );

const getUsage = {
  summary: "Sum up what a project has used",
  description:
    "Calls count in the hour in which they ended; `from` and `to` are widened to whole hours, and answered as they were taken. Without " +
    "them: the last 30 days. `totals` is the sum of all groups. For everybody in the project.",
  operationId: "getUsage",
  tags,
  errors: ["not_found"],
  params,
  querystring: z.strictObject({
    from: moment("Usage from this time on (RFC 3339)."),
    to: moment("Usage before this time (RFC 3339)."),
    groupBy,
  }),
  response: {
    200: z
      .object({
        from: z.string(),
        to: z.string(),
        groupBy: z.array(z.enum(USAGE_DIMENSIONS)),
        totals: usageSumsSchema,
        groups: z.array(usageGroupSchema),
      })
      .meta({ id: "Usage" }),
  },
} satisfies FastifySchema;

const listUsageCalls = {
  summary: "List a project's calls",
  description:
    "The newest first: who called which model, what came of it, what it used and what it cost. Never what was said. For everybody in " +
    "the project.",
  operationId: "listUsageCalls",
  tags,
  errors: ["not_found"],
  params,
  querystring: z.strictObject({
    from: moment("Calls that ended at or after this time (RFC 3339)."),
    to: moment("Calls that ended before this time (RFC 3339)."),
    keyId: reference("Calls with this key alone.").optional(),
    agentId: reference("Calls of this agent alone.").optional(),
    model: z
      .string()
      .max(MOST_MODEL_CHARACTERS)
      .regex(...ONE_LINE)
      .optional()
      .describe("Calls of this model alone, as callers named it."),
    outcome: reference("Calls that ended so alone: `ok`, `rejected`, `client_left`, or an error code.").optional(),
    ...pageQuery,
  }),
  response: { 200: z.object({ calls: z.array(usageCallSchema), nextPageToken: z.string() }) },
} satisfies FastifySchema;

export function registerUsageRoutes(app: PlatformApp, usage: UsageService): void {
  const onRequest = requirePrincipal("user");

  app.get("/v1/projects/:id/usage", { onRequest, schema: getUsage }, async (request) => {
    const { groupBy: by, ...range } = request.query;
    const { from, to, totals, groups } = await usage.sums(principalOf(request, "user"), request.params.id, {
      ...range,
      by,
    });
    return {
      from: rfc3339(from),
      to: rfc3339(to),
      groupBy: by,
      totals: toUsageSums(totals),
      groups: groups.map((group) => toUsageGroup(by, group)),
    };
  });

  app.get("/v1/projects/:id/usage/calls", { onRequest, schema: listUsageCalls }, async (request) => {
    const caller = principalOf(request, "user");
    const { pageSize, pageToken, ...filter } = request.query;
    const { items, nextPageToken } = await paginate(
      { pageSize, pageToken },
      {
        fetch: (page) => usage.calls(caller, request.params.id, { ...filter, page }),
        cursorOf: (record) => record.id,
      },
    );
    return { calls: items.map(toUsageCall), nextPageToken };
  });
}
