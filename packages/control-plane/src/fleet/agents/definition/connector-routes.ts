import { connectorSchema } from "@fairlead/protocol/agents";
import type { FastifySchema } from "fastify";
import { z } from "zod";
import type { PlatformApp } from "../../../http/platform-host.ts";
import { reference } from "../../../http/requests/fields.ts";
import { principalOf, requirePrincipal } from "../../../http/requests/require-principal.ts";
import type { ConnectorService } from "./connector-service.ts";

const listConnectors = {
  summary: "List connectors",
  description: "The connectors that agents of the project can use, by slug, and the secrets that each needs.",
  operationId: "listConnectors",
  tags: ["Connectors"],
  errors: ["not_found"],
  querystring: z.strictObject({ projectId: reference("The project ID.") }),
  response: { 200: z.object({ connectors: z.array(connectorSchema) }) },
} satisfies FastifySchema;

export function registerConnectorRoutes(app: PlatformApp, connectors: ConnectorService): void {
  app.get("/v1/connectors", { onRequest: requirePrincipal("user"), schema: listConnectors }, async (request) => ({
    connectors: [...(await connectors.list(principalOf(request, "user"), request.query.projectId))],
  }));
}
