import { DomainError } from "@fairlead/protocol/errors";
import { rfc3339 } from "@fairlead/protocol/values/clock";
import { ONE_LINE } from "@fairlead/protocol/values/text";
import type { FastifySchema } from "fastify";
import { z } from "zod";
import type { PlatformApp } from "../../http/platform-host.ts";
import { moment, reference } from "../../http/requests/fields.ts";
import { decodePageToken, encodePageToken, pageQuery, paginate } from "../../http/requests/pagination.ts";
import { principalOf, requirePrincipal } from "../../http/requests/require-principal.ts";
import {
  MOST_MODEL_CHARACTERS,
  toUsageCall,
  toUsageGroup,
  toUsageSums,
  USAGE_DIMENSIONS,
  type UsageDimension,
  usageCallSchema,
  usageGroupSchema,
  usageSumsSchema,
} from "./usage.ts";
import type { PagePlace, UsageService } from "./usage-service.ts";

const tags = ["Usage"];
const params = z.object({ id: reference("The project ID.") });

const groupBy = z
  .string()
  .max(100)
  .default("day")
  .transform((text) => text.split(","))
  .pipe(
    z
      .array(z.enum(USAGE_DIMENSIONS, { error: `must be a comma-separated list of ${USAGE_DIMENSIONS.join(", ")}` }))
      .refine((names) => new Set(names).size === names.length, "must not contain a name twice"),
  )
  .describe(
    `The dimensions to group by, separated by commas: ${USAGE_DIMENSIONS.join(", ")}. Days and hours are in UTC.`,
  );

const getUsage = {
  summary: "Get a project's usage totals",
  description:
    "Calls count toward the hour in which they ended. `from` and `to` are widened to whole hours and returned as used. Default: " +
    "the last 30 days. `totals` is the sum of all groups, on every page. A page contains up to 500 groups, the most expensive on the " +
    "first page, and all pages together up to 5,000. Within a page, groups are sorted by `groupBy`. For all members of the project.",
  operationId: "getUsage",
  tags,
  errors: ["not_found"],
  params,
  querystring: z.strictObject({
    from: moment("Usage from this time on (RFC 3339)."),
    to: moment("Usage before this time (RFC 3339)."),
    groupBy,
    pageToken: pageQuery.pageToken.describe(
      "`nextPageToken` of the previous page, with the same `groupBy`. It also fixes the time range of the page.",
    ),
  }),
  response: {
    200: z
      .object({
        from: z.string(),
        to: z.string(),
        groupBy: z.array(z.enum(USAGE_DIMENSIONS)),
        totals: usageSumsSchema,
        groups: z.array(usageGroupSchema),
        other: usageSumsSchema
          .nullable()
          .describe("The sum of all groups that are not on any page. Returned on the first page, or null."),
        nextPageToken: z.string(),
      })
      .meta({ id: "Usage" }),
  },
} satisfies FastifySchema;

const listUsageCalls = {
  summary: "List a project's calls",
  description:
    "Newest first: the caller, the model, the outcome, the usage and the cost of each call, but never its content. For all members of " +
    "the project.",
  operationId: "listUsageCalls",
  tags,
  errors: ["not_found"],
  params,
  querystring: z.strictObject({
    from: moment("Calls that ended at or after this time (RFC 3339)."),
    to: moment("Calls that ended before this time (RFC 3339)."),
    keyId: reference("Only calls with this key.").optional(),
    agentId: reference("Only calls of this agent.").optional(),
    model: z
      .string()
      .max(MOST_MODEL_CHARACTERS)
      .regex(...ONE_LINE)
      .optional()
      .describe("Only calls of this model, as named by the caller."),
    outcome: reference("Only calls with this outcome: `ok`, `rejected`, `client_left`, or an error code.").optional(),
    ...pageQuery,
  }),
  response: { 200: z.object({ calls: z.array(usageCallSchema), nextPageToken: z.string() }) },
} satisfies FastifySchema;

export function registerUsageRoutes(app: PlatformApp, usage: UsageService): void {
  const onRequest = requirePrincipal("user");

  app.get("/v1/projects/:id/usage", { onRequest, schema: getUsage }, async (request) => {
    const { groupBy: by, pageToken, ...range } = request.query;
    const { from, to, totals, groups, other, next } = await usage.sums(
      principalOf(request, "user"),
      request.params.id,
      { ...range, by, place: pageToken === "" ? undefined : placeIn(pageToken, by) },
    );
    return {
      from: rfc3339(from),
      to: rfc3339(to),
      groupBy: by,
      totals: toUsageSums(totals),
      groups: groups.map((group) => toUsageGroup(by, group)),
      other: other === null ? null : toUsageSums(other),
      nextPageToken: next === null ? "" : tokenOf(next, by),
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

const TOKEN = /^(\d{1,15})\.(\d{1,15})\.(\d{1,6})\.([a-z,]{1,100})$/;

function tokenOf({ from, to, offset }: PagePlace, by: readonly UsageDimension[]): string {
  return encodePageToken([from, to, offset, by.join(",")].join("."));
}

/** @throws DomainError invalid_request */
function placeIn(token: string, by: readonly UsageDimension[]): PagePlace {
  const [, from, to, offset, grouped] = TOKEN.exec(decodePageToken(token)) ?? [];
  if (grouped === by.join(",")) return { from: Number(from), to: Number(to), offset: Number(offset) };
  const message = "`pageToken` was not returned by this list with this grouping.";
  throw new DomainError("invalid_request", message, { param: "pageToken" });
}
