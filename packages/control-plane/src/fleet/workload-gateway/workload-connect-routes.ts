import { connectTypeSchema, workloadConnectSchema } from "@fairlead/protocol/workload-connect";
import type { FastifySchema } from "fastify";
import { z } from "zod";
import type { PlatformApp } from "../../http/platform-host.ts";
import { reference } from "../../http/requests/fields.ts";
import { principalOf, requirePrincipal } from "../../http/requests/require-principal.ts";
import type { WorkloadConnectService } from "./workload-connect-service.ts";

const getWorkloadConnect = {
  summary: "Get access to a node's engine",
  description:
    "`gatewayUrl` maps to the engine's root. Send `authToken` as a Bearer token or, for a WebSocket, as the subprotocol " +
    "`fairlead.token.<authToken>`. The token is valid for 15 minutes. Only for owners and admins, and recorded in the audit log. The traffic " +
    "is not metered. The node itself can also make this call.",
  operationId: "getWorkloadConnect",
  tags: ["Nodes"],
  errors: ["not_found", "permission_denied", "node_not_enrolled", "no_running_engine"],
  params: z.object({ id: reference("The node ID.") }),
  querystring: z.strictObject({
    workloadType: connectTypeSchema.optional().describe("Unspecified or omitted: the engine."),
  }),
  response: { 200: workloadConnectSchema },
} satisfies FastifySchema;

/** `docs/interface.md §4.4`. */
export function registerWorkloadConnectRoutes(app: PlatformApp, workloads: WorkloadConnectService): void {
  const onRequest = requirePrincipal("user", "node");
  // A custom method's colon is not part of the id.
  app.get("/v1/nodes/:id(^[^:]+)/workload-connect", { onRequest, schema: getWorkloadConnect }, async (request) =>
    workloads.connect(principalOf(request, "user", "node"), request.params.id),
  );
}
