import { rfc3339 } from "@fairlead/protocol/clock";
import { planSchema, planSourceSchema } from "@fairlead/protocol/plans";
import type { FastifySchema } from "fastify";
import { z } from "zod";
import { reference } from "../http/fields.ts";
import { pageQuery, paginate } from "../http/pagination.ts";
import type { PlatformApp } from "../http/platform-host.ts";
import { requirePrincipal } from "../http/require-principal.ts";
import { planResource } from "./plan.ts";
import type { KnownPlans, PlanService } from "./plan-service.ts";

const tags = ["Nodes"];
const sources = z.array(planSourceSchema).describe("Where each provider's plans are from, and when they held.");

const listPlans = {
  summary: "List plans",
  description:
    "Machine types that a node can be created on, as they were last heard of; `:refresh` asks a provider. A machine that you have " +
    "needs none: its `planId` is `byo`.",
  operationId: "listPlans",
  tags,
  querystring: z.strictObject({ provider: reference("Of this provider alone.").optional(), ...pageQuery }),
  response: { 200: z.object({ plans: z.array(planSchema), sources, nextPageToken: z.string() }) },
} satisfies FastifySchema;

const refreshPlans = {
  summary: "Ask a provider for its plans",
  description:
    "With a token of yours, which is used for this call only; what it brings is what `GET /v1/plans` answers from then on.",
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
    provider: reference("As `hetzner`."),
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
