import { workloadConnectSchema } from "@fairlead/protocol/workload-connect";
import type { FastifySchema } from "fastify";
import { z } from "zod";
import type { PlatformApp } from "../../http/platform-host.ts";
import { reference } from "../../http/requests/fields.ts";
import { principalOf, requirePrincipal } from "../../http/requests/require-principal.ts";
import type { AgentConnectService } from "./agent-connect-service.ts";

const getAgentConnect = {
  summary: "Get access to an agent",
  description:
    "`gatewayUrl` maps to the agent's root. Send `authToken` as a Bearer token or, for a WebSocket, as the subprotocol " +
    "`fairlead.token.<authToken>`. The token is valid for 15 minutes, for the agent on the node where it currently runs. Only for owners " +
    "and admins, and recorded in the audit log.",
  operationId: "getAgentConnect",
  tags: ["Agents"],
  errors: ["not_found", "permission_denied", "node_not_enrolled", "no_running_engine"],
  params: z.object({ id: reference("The agent ID.") }),
  response: { 200: workloadConnectSchema },
} satisfies FastifySchema;

export function registerAgentConnectRoutes(app: PlatformApp, agents: AgentConnectService): void {
  const onRequest = requirePrincipal("user");
  // A custom method's colon is not part of the id.
  app.get("/v1/agents/:id(^[^:]+)/connect", { onRequest, schema: getAgentConnect }, async (request) =>
    agents.connect(principalOf(request, "user"), request.params.id),
  );
}
