import { workloadConnectSchema } from "@fairlead/protocol/workload-connect";
import type { FastifySchema } from "fastify";
import { z } from "zod";
import { reference } from "../http/fields.ts";
import type { PlatformApp } from "../http/platform-host.ts";
import { principalOf, requirePrincipal } from "../http/require-principal.ts";
import type { AgentConnectService } from "./agent-connect-service.ts";

const getAgentConnect = {
  summary: "Get a way to an agent",
  description:
    "`gatewayUrl` stands for the agent's root; send `authToken` to it as a Bearer token, or on a WebSocket as the subprotocol " +
    "`fairlead.token.<authToken>`. The token holds for 15 minutes, and opens the agent on the node where it runs now. For owners " +
    "and administrators, and recorded.",
  operationId: "getAgentConnect",
  tags: ["Agents"],
  errors: ["not_found", "permission_denied", "node_not_enrolled", "no_running_engine"],
  params: z.object({ id: reference("The agent's id.") }),
  response: { 200: workloadConnectSchema },
} satisfies FastifySchema;

export function registerAgentConnectRoutes(app: PlatformApp, agents: AgentConnectService): void {
  const onRequest = requirePrincipal("user");
  // A custom method's colon is no part of the id (design §4, Form).
  app.get("/v1/agents/:id(^[^:]+)/connect", { onRequest, schema: getAgentConnect }, async (request) =>
    agents.connect(principalOf(request, "user"), request.params.id),
  );
}
