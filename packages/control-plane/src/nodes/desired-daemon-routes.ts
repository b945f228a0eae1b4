import { buildVersionSchema } from "@fairlead/protocol/daemon-builds";
import type { FastifySchema } from "fastify";
import { z } from "zod";
import { reference } from "../http/fields.ts";
import type { PlatformApp } from "../http/platform-host.ts";
import { principalOf, requirePrincipal } from "../http/require-principal.ts";
import { DAEMON_SCOPES } from "./desired-daemon.ts";
import type { DesiredDaemonService } from "./desired-daemon-service.ts";
import { NODE_PATH, nodeParams } from "./node-routes.ts";

const tags = ["Daemon builds"];
const projectParams = z.object({ id: reference("The project's id.") });

const answer = z
  .object({
    version: z.string().nullable().describe("What is asked for here; null: nothing."),
    requestedAt: z.string().nullable(),
    effective: z
      .object({ version: z.string(), scope: z.enum(DAEMON_SCOPES) })
      .nullable()
      .describe("What counts: a node's own goes before its project's, and that before the fleet's."),
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
  .strictObject({ version: buildVersionSchema.nullable().describe("Of a build that is offered; null: ask for none.") })
  .meta({ examples: [{ version: "1.3.0" }] });

const response = { 200: answer };
const HOW =
  "The daemons download it, check it and change to it by themselves, and go back where it does not come up; engines run on. " +
  "Asked again for the same version, daemons that have given it up try it again.";

const getNodeVersion = {
  summary: "Get the daemon version that a node is to run",
  operationId: "getNodeDaemonVersion",
  tags,
  errors: ["not_found"],
  params: nodeParams,
  response,
} satisfies FastifySchema;

const setNodeVersion = {
  summary: "Ask for a daemon version on a node",
  description: HOW,
  operationId: "setNodeDaemonVersion",
  tags,
  errors: ["not_found", "permission_denied"],
  params: nodeParams,
  body,
  response,
} satisfies FastifySchema;

const getProjectVersion = {
  summary: "Get the daemon version that a project's nodes are to run",
  operationId: "getProjectDaemonVersion",
  tags,
  errors: ["not_found"],
  params: projectParams,
  response,
} satisfies FastifySchema;

const setProjectVersion = {
  summary: "Ask for a daemon version on a project's nodes",
  description: `${HOW} All nodes begin within minutes; to go from node to node, ask for each.`,
  operationId: "setProjectDaemonVersion",
  tags,
  errors: ["not_found", "permission_denied", "project_deleting"],
  params: projectParams,
  body,
  response,
} satisfies FastifySchema;

const getFleetVersion = {
  summary: "Get the daemon version that all nodes are to run",
  description: "For platform administrators.",
  operationId: "getFleetDaemonVersion",
  tags,
  errors: ["permission_denied"],
  response,
} satisfies FastifySchema;

const setFleetVersion = {
  summary: "Ask for a daemon version on all nodes",
  description: `For platform administrators. ${HOW} All nodes begin within minutes; to go from node to node, ask for each.`,
  operationId: "setFleetDaemonVersion",
  tags,
  errors: ["permission_denied"],
  body,
  response,
} satisfies FastifySchema;

export function registerDesiredDaemonRoutes(app: PlatformApp, service: DesiredDaemonService): void {
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
