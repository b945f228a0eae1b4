import { projectLimitsSchema } from "@fairlead/protocol/resources";
import type { FastifySchema } from "fastify";
import { z } from "zod";
import { reference } from "../http/fields.ts";
import type { PlatformApp } from "../http/platform-host.ts";
import { principalOf, requirePrincipal } from "../http/require-principal.ts";
import { projectLimitsChangeSchema, toProjectLimits } from "./call-limits.ts";
import type { LimitService } from "./limit-service.ts";

const tags = ["Projects"];
const params = z.object({ id: reference("The project's id.") });

const getLimits = {
  summary: "Get a project's limits",
  description: "Of all its calls to the inference host together. Keys have limits of their own besides.",
  operationId: "getProjectLimits",
  tags,
  errors: ["not_found"],
  params,
  response: { 200: projectLimitsSchema },
} satisfies FastifySchema;

const updateLimits = {
  summary: "Change a project's limits",
  description: "What is absent stays. Wider ones than the server's are for platform administrators to set.",
  operationId: "updateProjectLimits",
  tags,
  errors: ["not_found", "permission_denied", "project_deleting"],
  params,
  body: projectLimitsChangeSchema.meta({ examples: [{ requestsPerMinute: 600, parallelCalls: 40 }] }),
  response: { 200: projectLimitsSchema },
} satisfies FastifySchema;

export function registerLimitRoutes(app: PlatformApp, limits: LimitService): void {
  const onRequest = requirePrincipal("user");

  app.get("/v1/projects/:id/limits", { onRequest, schema: getLimits }, async (request) =>
    toProjectLimits(await limits.get(principalOf(request, "user"), request.params.id), limits.server),
  );

  app.patch("/v1/projects/:id/limits", { onRequest, schema: updateLimits }, async (request) =>
    toProjectLimits(await limits.update(principalOf(request, "user"), request.params.id, request.body), limits.server),
  );
}
