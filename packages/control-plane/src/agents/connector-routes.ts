import { connectorSchema } from "@fairlead/protocol/agents";
import type { FastifySchema } from "fastify";
import { z } from "zod";
import { reference } from "../http/fields.ts";
import type { PlatformApp } from "../http/platform-host.ts";
import { principalOf, requirePrincipal } from "../http/require-principal.ts";
import type { ConnectorService } from "./connector-service.ts";

const listConnectors = {
  summary: "List the connectors",
  description: "What agents of the project can be joined to, by slug, and the secrets that each needs.",
  operationId: "listConnectors",
  tags: ["Connectors"],
  errors: ["not_found"],
  querystring: z.strictObject({ projectId: reference("The project's id.") }),
  response: { 200: z.object({ connectors: z.array(connectorSchema) }) },
} satisfies FastifySchema;

export function registerConnectorRoutes(app: PlatformApp, connectors: ConnectorService): void {
  app.get("/v1/connectors", { onRequest: requirePrincipal("user"), schema: listConnectors }, async (request) => ({
    connectors: [...(await connectors.list(principalOf(request, "user"), request.query.projectId))],
  }));
}
