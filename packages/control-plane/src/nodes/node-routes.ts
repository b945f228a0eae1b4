import { rfc3339 } from "@fairlead/protocol/clock";
import { engineConfigSchema } from "@fairlead/protocol/engine-config";
import { enrollRequestSchema, identityTokenRequestSchema } from "@fairlead/protocol/enrollment";
import { DomainError } from "@fairlead/protocol/errors";
import { readyRequestSchema } from "@fairlead/protocol/workload";
import { z } from "zod";
import { bearerToken } from "../auth/bearer.ts";
import { pageQuery, paginate } from "../http/pagination.ts";
import type { PlatformApp } from "../http/platform-host.ts";
import { principalOf, requirePrincipal } from "../http/require-principal.ts";
import type { EnrollmentService } from "./enrollment-service.ts";
import { nodeNameSchema, toNode } from "./node.ts";
import type { NodeReportService } from "./node-report-service.ts";
import { type NodeService, nodeNotFound } from "./node-service.ts";

export interface NodeRouteServices {
  readonly nodes: NodeService;
  readonly enrollment: EnrollmentService;
  readonly reports: NodeReportService;
}

/** Interface §4.4. `engineConfig` is our addition (decisions/0003): a node is created with its engine in one call. */
const createNodeSchema = z.strictObject({
  projectId: z.string(),
  planId: z.string(),
  name: nodeNameSchema,
  location: z.string().max(128).optional(),
  providerToken: z.string().max(4096).optional(),
  directSecrets: z.boolean().default(false),
  engineConfig: engineConfigSchema.optional(),
});

const nodeParams = z.object({ id: z.string() });

export function registerNodeRoutes(app: PlatformApp, services: NodeRouteServices): void {
  registerOperatorRoutes(app, services);
  registerEnrollmentRoutes(app, services);
  registerDaemonRoutes(app, services);
}

/** What people call. */
function registerOperatorRoutes(app: PlatformApp, { nodes, enrollment }: NodeRouteServices): void {
  app.post(
    "/v1/nodes",
    { onRequest: requirePrincipal("user"), schema: { body: createNodeSchema } },
    async (request) => {
      const { engineConfig = null, ...input } = request.body;
      const node = await nodes.create(principalOf(request, "user"), { ...input, engineConfig });
      return { node: toNode(node) };
    },
  );

  app.get(
    "/v1/nodes",
    {
      onRequest: requirePrincipal("user"),
      schema: { querystring: z.strictObject({ projectId: z.string(), ...pageQuery }) },
    },
    async (request) => {
      const caller = principalOf(request, "user");
      const { items, nextPageToken } = await paginate(request.query, {
        fetch: (page) => nodes.list(caller, request.query.projectId, page),
        cursorOf: (node) => node.id,
      });
      return { nodes: items.map(toNode), nextPageToken };
    },
  );

  app.get(
    "/v1/nodes/:id",
    { onRequest: requirePrincipal("user", "node"), schema: { params: nodeParams } },
    async (request) => toNode(await nodes.get(principalOf(request, "user", "node"), request.params.id)),
  );

  app.post(
    "/v1/nodes/:id/bootstrap-tokens",
    { onRequest: requirePrincipal("user"), schema: { params: nodeParams, body: z.strictObject({}).nullish() } },
    async (request) => {
      const issued = await enrollment.issueBootstrapToken(principalOf(request, "user"), request.params.id);
      return { token: issued.token, expiresAt: rfc3339(issued.expiresAt) };
    },
  );
}

/** What a daemon calls before it has an identity token: each brings its own proof. */
function registerEnrollmentRoutes(app: PlatformApp, { enrollment }: NodeRouteServices): void {
  app.post("/v1/nodes/:id/enroll", { schema: { params: nodeParams, body: enrollRequestSchema } }, async (request) => {
    const bootstrapToken = bearerToken(request.headers.authorization);
    if (bootstrapToken === null) {
      throw new DomainError("invalid_credential", "Send the bootstrap token as `Authorization: Bearer flb_…`.");
    }
    return enrollment.enroll({
      nodeId: request.params.id,
      bootstrapToken,
      request: request.body,
      remoteAddress: request.ip,
    });
  });

  app.post(
    "/v1/nodes/:id/identity-tokens",
    { schema: { params: nodeParams, body: identityTokenRequestSchema } },
    async (request) => enrollment.renewIdentity(request.params.id, request.body.assertion),
  );
}

/** Interface §4.4, ready; policy (design §6): the identity token of that node, no other credential. */
function registerDaemonRoutes(app: PlatformApp, { reports }: NodeRouteServices): void {
  app.post(
    "/v1/nodes/:id/ready",
    { onRequest: requirePrincipal("node"), schema: { params: nodeParams, body: readyRequestSchema } },
    async (request) => {
      const { nodeId } = principalOf(request, "node");
      if (nodeId !== request.params.id) throw nodeNotFound();
      if (request.body.id !== nodeId) {
        throw new DomainError("invalid_request", "`id`: must be the node of the path.", { param: "id" });
      }
      await reports.ready(nodeId, request.body);
      return {};
    },
  );
}
