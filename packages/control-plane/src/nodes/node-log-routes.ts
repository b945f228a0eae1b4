import type { FastifySchema } from "fastify";
import { z } from "zod";
import type { PlatformApp } from "../http/platform-host.ts";
import { principalOf, requirePrincipal } from "../http/require-principal.ts";
import { LOG_FORMS, logAnswer, logQueryFields, logText } from "./log-route-schemas.ts";
import type { NodeLogService } from "./node-log-service.ts";
import { NODE_PATH, nodeParams } from "./node-routes.ts";
import { ENGINE_WORKLOAD } from "./plan-desired.ts";

const getNodeLogs = {
  summary: "Read what a node's engine prints",
  description: `${LOG_FORMS} For owners and administrators, and recorded: engines may print what they were asked.`,
  operationId: "getNodeLogs",
  tags: ["Nodes"],
  errors: ["not_found", "permission_denied", "no_running_engine", "unavailable", "overloaded"],
  params: nodeParams,
  querystring: z.strictObject({
    workload: z.literal(ENGINE_WORKLOAD).default(ENGINE_WORKLOAD),
    ...logQueryFields,
  }),
  response: { 200: logAnswer },
} satisfies FastifySchema;

export function registerNodeLogRoutes(app: PlatformApp, logs: NodeLogService): void {
  const onRequest = requirePrincipal("user");
  app.get(`${NODE_PATH}/logs`, { onRequest, schema: getNodeLogs }, async (request, reply) => {
    const lines = await logs.open(principalOf(request, "user"), request.params.id, request.query);
    return reply.send(logText(request, reply, lines));
  });
}
