import { projectLimitsSchema } from "@fairlead/protocol/resources";
import type { FastifySchema } from "fastify";
import { z } from "zod";
import type { PlatformApp } from "../../http/platform-host.ts";
import { reference } from "../../http/requests/fields.ts";
import { principalOf, requirePrincipal } from "../../http/requests/require-principal.ts";
import { projectLimitsChangeSchema, toProjectLimits } from "./call-limits.ts";
import type { LimitService } from "./limit-service.ts";

const tags = ["Projects"];
const params = z.object({ id: reference("The project ID.") });

const getLimits = {
  summary: "Get a project's limits",
  description: "For all of its calls to the inference host. Keys have their own limits in addition.",
  operationId: "getProjectLimits",
  tags,
  errors: ["not_found"],
  params,
  response: { 200: projectLimitsSchema },
} satisfies FastifySchema;

const updateLimits = {
  summary: "Change a project's limits",
  description: "Omitted fields are unchanged. Only platform administrators can set limits above the server's.",
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
