import type { FastifySchema } from "fastify";
import { z } from "zod";
import type { PlatformApp } from "../http/platform-host.ts";
import { principalOf, requirePrincipal } from "../http/require-principal.ts";
import { LOG_FORMS, logAnswer, logQueryFields, logText } from "../nodes/log-route-schemas.ts";
import type { AgentLogService } from "./agent-log-service.ts";
import { AGENT_PATH, agentParams } from "./agent-routes.ts";

const getAgentLogs = {
  summary: "Read what an agent prints",
  description: `${LOG_FORMS} For owners and administrators, and recorded: agents may print what they work on.`,
  operationId: "getAgentLogs",
  tags: ["Agents"],
  errors: ["not_found", "permission_denied", "no_running_engine", "unavailable", "overloaded"],
  params: agentParams,
  querystring: z.strictObject(logQueryFields),
  response: { 200: logAnswer },
} satisfies FastifySchema;

export function registerAgentLogRoutes(app: PlatformApp, logs: AgentLogService): void {
  const onRequest = requirePrincipal("user");
  app.get(`${AGENT_PATH}/logs`, { onRequest, schema: getAgentLogs }, async (request, reply) => {
    const lines = await logs.open(principalOf(request, "user"), request.params.id, request.query);
    return reply.send(logText(request, reply, lines));
  });
}
