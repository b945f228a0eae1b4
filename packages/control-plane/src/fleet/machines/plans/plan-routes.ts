import { planSchema, planSourceSchema } from "@fairlead/protocol/plans";
import { rfc3339 } from "@fairlead/protocol/values/clock";
import type { FastifySchema } from "fastify";
import { z } from "zod";
import type { PlatformApp } from "../../../http/platform-host.ts";
import { reference } from "../../../http/requests/fields.ts";
import { pageQuery, paginate } from "../../../http/requests/pagination.ts";
import { requirePrincipal } from "../../../http/requests/require-principal.ts";
import { planResource } from "./plan.ts";
import type { KnownPlans, PlanService } from "./plan-service.ts";

const tags = ["Nodes"];
const sources = z.array(planSourceSchema).describe("The source of each provider's plans, and when they were current.");

const listPlans = {
  summary: "List plans",
  description:
    "Machine types for nodes, as last reported by their provider. `:refresh` fetches them again. Your own machines " +
    "need no plan: their `planId` is `byo`.",
  operationId: "listPlans",
  tags,
  querystring: z.strictObject({ provider: reference("Only plans of this provider.").optional(), ...pageQuery }),
  response: { 200: z.object({ plans: z.array(planSchema), sources, nextPageToken: z.string() }) },
} satisfies FastifySchema;

const refreshPlans = {
  summary: "Refresh a provider's plans",
  description:
    "Fetches the plans with your token, which is used for this call only. `GET /v1/plans` returns the result from then on.",
  operationId: "refreshPlans",
  tags,
  errors: [
    "provider_token_invalid",
    "provider_token_read_only",
    "provider_token_wrong_project",
    "rate_limit_exceeded",
    "unavailable",
  ],
  body: z.strictObject({
    provider: reference("Such as `hetzner`."),
    providerToken: z.string().min(1).max(4096).optional(),
  }),
  response: { 200: z.object({ plans: z.array(planSchema), sources }) },
} satisfies FastifySchema;

export function registerPlanRoutes(app: PlatformApp, plans: PlanService): void {
  const onRequest = requirePrincipal("user");

  app.get("/v1/plans", { onRequest, schema: listPlans }, async (request) => {
    const { provider } = request.query;
    const known = (await plans.list()).filter((each) => provider === undefined || each.provider === provider);
    const all = known.flatMap(resources).toSorted((one, other) => (one.id < other.id ? -1 : 1));
    const { items, nextPageToken } = await paginate(request.query, {
      fetch: async ({ after, limit }) => all.filter(({ id }) => after === null || id > after).slice(0, limit),
      cursorOf: ({ id }) => id,
    });
    return { plans: [...items], sources: known.map(sourceOf), nextPageToken };
  });

  app.post("/v1/plans::refresh", { onRequest, schema: refreshPlans }, async (request) => {
    const known = await plans.refresh(request.body.provider, request.body.providerToken);
    return { plans: resources(known), sources: [sourceOf(known)] };
  });
}

function resources({ provider, plans }: KnownPlans): ReturnType<typeof planResource>[] {
  return plans.map((plan) => planResource(provider, plan));
}

function sourceOf({ provider, from, at }: KnownPlans): z.output<typeof planSourceSchema> {
  return { provider, from, at: rfc3339(at) };
}
