import { buildVersionSchema } from "@fairlead/protocol/daemon-builds";
import type { FastifySchema } from "fastify";
import { z } from "zod";
import type { PlatformApp } from "../../../http/platform-host.ts";
import { reference } from "../../../http/requests/fields.ts";
import { principalOf, requirePrincipal } from "../../../http/requests/require-principal.ts";
import { NODE_PATH, nodeParams } from "../node-routes.ts";
import { DAEMON_SCOPES } from "./daemon-version.ts";
import type { DaemonVersionService } from "./daemon-version-service.ts";

const tags = ["Daemon builds"];
const projectParams = z.object({ id: reference("The project ID.") });

const answer = z
  .object({
    version: z.string().nullable().describe("The version requested at this level. Null: none."),
    requestedAt: z.string().nullable(),
    effective: z
      .object({ version: z.string(), scope: z.enum(DAEMON_SCOPES) })
      .nullable()
      .describe("The version in effect: the node's takes precedence over its project's, and that over the fleet's."),
  })
  .meta({
    id: "DesiredDaemonVersion",
    examples: [
      {
        version: "1.3.0",
        requestedAt: "2026-03-02T11:00:00.000Z",
        effective: { version: "1.3.0", scope: "node" },
      },
    ],
  });

const body = z
  .strictObject({
    version: buildVersionSchema.nullable().describe("The version of an available build. Null: request none."),
  })
  .meta({ examples: [{ version: "1.3.0" }] });

const response = { 200: answer };
const HOW =
  "The daemons download the build, verify it and update themselves. If the new version does not start correctly, they return to the previous one. Engines keep running. " +
  "Repeating the request for the same version makes daemons that gave up on it try again.";

const getNodeVersion = {
  summary: "Get the requested daemon version of a node",
  operationId: "getNodeDaemonVersion",
  tags,
  errors: ["not_found"],
  params: nodeParams,
  response,
} satisfies FastifySchema;

const setNodeVersion = {
  summary: "Request a daemon version for a node",
  description: HOW,
  operationId: "setNodeDaemonVersion",
  tags,
  errors: ["not_found", "permission_denied"],
  params: nodeParams,
  body,
  response,
} satisfies FastifySchema;

const getProjectVersion = {
  summary: "Get the requested daemon version of a project's nodes",
  operationId: "getProjectDaemonVersion",
  tags,
  errors: ["not_found"],
  params: projectParams,
  response,
} satisfies FastifySchema;

const setProjectVersion = {
  summary: "Request a daemon version for a project's nodes",
  description: `${HOW} All nodes start within minutes. To update one node at a time, make a request for each node.`,
  operationId: "setProjectDaemonVersion",
  tags,
  errors: ["not_found", "permission_denied", "project_deleting"],
  params: projectParams,
  body,
  response,
} satisfies FastifySchema;

const getFleetVersion = {
  summary: "Get the requested daemon version of all nodes",
  description: "Only for platform administrators.",
  operationId: "getFleetDaemonVersion",
  tags,
  errors: ["permission_denied"],
  response,
} satisfies FastifySchema;

const setFleetVersion = {
  summary: "Request a daemon version for all nodes",
  description: `Only for platform administrators. ${HOW} All nodes start within minutes. To update one node at a time, make a request for each node.`,
  operationId: "setFleetDaemonVersion",
  tags,
  errors: ["permission_denied"],
  body,
  response,
} satisfies FastifySchema;

export function registerDaemonVersionRoutes(app: PlatformApp, service: DaemonVersionService): void {
  const onRequest = requirePrincipal("user");
  const nodePath = `${NODE_PATH}/daemon-version` as const;
  const projectPath = "/v1/projects/:id/daemon-version";
  const fleetPath = "/v1/daemon-version";

  app.get(nodePath, { onRequest, schema: getNodeVersion }, (request) =>
    service.get(principalOf(request, "user"), { scope: "node", id: request.params.id }),
  );
  app.put(nodePath, { onRequest, schema: setNodeVersion }, (request) =>
    service.set(principalOf(request, "user"), { scope: "node", id: request.params.id }, request.body.version),
  );
  app.get(projectPath, { onRequest, schema: getProjectVersion }, (request) =>
    service.get(principalOf(request, "user"), { scope: "project", id: request.params.id }),
  );
  app.put(projectPath, { onRequest, schema: setProjectVersion }, (request) =>
    service.set(principalOf(request, "user"), { scope: "project", id: request.params.id }, request.body.version),
  );
  app.get(fleetPath, { onRequest, schema: getFleetVersion }, (request) =>
    service.get(principalOf(request, "user"), { scope: "fleet" }),
  );
  app.put(fleetPath, { onRequest, schema: setFleetVersion }, (request) =>
    service.set(principalOf(request, "user"), { scope: "fleet" }, request.body.version),
  );
}
