import { agentLimitsSchema } from "@fairlead/protocol/resources";
import type { FastifySchema } from "fastify";
import type { PlatformApp } from "../http/platform-host.ts";
import { principalOf, requirePrincipal } from "../http/require-principal.ts";
import { keyLimitsChangeSchema } from "../keys/key-limits.ts";
import type { AgentLimitsService } from "./agent-limits-service.ts";
import { AGENT_PATH, agentParams } from "./agent-routes.ts";

const tags = ["Agents"];

const getAgentLimits = {
  summary: "Get an agent's limits, and what it has spent",
  description: "Of its calls to the inference host. Its project's limits and balance count besides.",
  operationId: "getAgentLimits",
  tags,
  errors: ["not_found"],
  params: agentParams,
  response: { 200: agentLimitsSchema },
} satisfies FastifySchema;

const updateAgentLimits = {
  summary: "Change an agent's limits",
  description: "What is absent stays as it is; null lifts a limit. It counts within a second, without a restart.",
  operationId: "updateAgentLimits",
  tags,
  errors: ["not_found", "permission_denied", "project_deleting"],
  params: agentParams,
  body: keyLimitsChangeSchema.meta({ examples: [{ parallelCalls: 4, budget: { daily: 5_000_000_000 } }] }),
  response: { 200: agentLimitsSchema },
} satisfies FastifySchema;

export function registerAgentLimitsRoutes(app: PlatformApp, limits: AgentLimitsService): void {
  const onRequest = requirePrincipal("user");

  app.get(`${AGENT_PATH}/limits`, { onRequest, schema: getAgentLimits }, async (request) =>
    limits.get(principalOf(request, "user"), request.params.id),
  );

  app.patch(`${AGENT_PATH}/limits`, { onRequest, schema: updateAgentLimits }, async (request) =>
    limits.update(principalOf(request, "user"), request.params.id, request.body),
  );
}
