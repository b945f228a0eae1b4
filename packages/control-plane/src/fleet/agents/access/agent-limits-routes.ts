import { agentLimitsSchema } from "@fairlead/protocol/resources";
import type { FastifySchema } from "fastify";
import { keyLimitsChangeSchema } from "../../../access/keys/key-limits.ts";
import type { PlatformApp } from "../../../http/platform-host.ts";
import { principalOf, requirePrincipal } from "../../../http/requests/require-principal.ts";
import { AGENT_PATH, agentParams } from "../agent-routes.ts";
import type { AgentLimitsService } from "./agent-limits-service.ts";

const tags = ["Agents"];

const getAgentLimits = {
  summary: "Get an agent's limits and spending",
  description: "For its calls to the inference host. The limits and balance of its project apply as well.",
  operationId: "getAgentLimits",
  tags,
  errors: ["not_found"],
  params: agentParams,
  response: { 200: agentLimitsSchema },
} satisfies FastifySchema;

const updateAgentLimits = {
  summary: "Change an agent's limits",
  description:
    "Omitted fields are unchanged; `null` removes a limit. Takes effect within one second, without a restart.",
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
