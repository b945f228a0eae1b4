import { connectTypeSchema, workloadConnectSchema } from "@fairlead/protocol/workload-connect";
import type { FastifySchema } from "fastify";
import { z } from "zod";
import { reference } from "../http/fields.ts";
import type { PlatformApp } from "../http/platform-host.ts";
import { principalOf, requirePrincipal } from "../http/require-principal.ts";
import type { WorkloadConnectService } from "./workload-connect-service.ts";

const getWorkloadConnect = {
  summary: "Get a way to the node's engine",
  description:
    "`gatewayUrl` stands for the engine's root; send `authToken` to it as a Bearer token, or on a WebSocket as the subprotocol " +
    "`fairlead.token.<authToken>`. The token holds for 15 minutes. For owners and administrators, and recorded; what goes " +
    "through is not metered. The node itself may ask too.",
  operationId: "getWorkloadConnect",
  tags: ["Nodes"],
  errors: ["not_found", "permission_denied", "node_not_enrolled", "no_running_engine"],
  params: z.object({ id: reference("The node's id.") }),
  querystring: z.strictObject({
    workloadType: connectTypeSchema.optional().describe("Unspecified or left out: the engine."),
  }),
  response: { 200: workloadConnectSchema },
} satisfies FastifySchema;

/** Interface §4.4. */
export function registerWorkloadConnectRoutes(app: PlatformApp, workloads: WorkloadConnectService): void {
  const onRequest = requirePrincipal("user", "node");
  // A custom method's colon is no part of the id (design §4, Form).
  app.get("/v1/nodes/:id(^[^:]+)/workload-connect", { onRequest, schema: getWorkloadConnect }, async (request) =>
    workloads.connect(principalOf(request, "user", "node"), request.params.id),
  );
}
