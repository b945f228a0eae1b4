import { engineConfigSchema } from "@fairlead/protocol/engine-config";
import { DomainError, type ErrorCode } from "@fairlead/protocol/errors";
import { nodeSchema } from "@fairlead/protocol/resources";
import { rfc3339 } from "@fairlead/protocol/values/clock";
import { nameSchema } from "@fairlead/protocol/values/text";
import type { FastifyRequest, FastifySchema } from "fastify";
import { z } from "zod";
import { idempotencyHeaders, REPLAYED_HEADER } from "../../access/idempotency/idempotency-key.ts";
import type { IdempotencyService } from "../../access/idempotency/idempotency-service.ts";
import type { Once } from "../../access/idempotency/once.ts";
import type { PlatformApp } from "../../http/platform-host.ts";
import { reference } from "../../http/requests/fields.ts";
import { pageQuery, paginate } from "../../http/requests/pagination.ts";
import { principalOf, requirePrincipal } from "../../http/requests/require-principal.ts";
import type { NodeUpdateService } from "./desired/node-update-service.ts";
import type { EnrollmentService } from "./enrolment/enrollment-service.ts";
import type { NodeRecord } from "./node.ts";
import type { NodeService } from "./node-service.ts";
import { toNewNode } from "./node-view.ts";
import type { NodeViewService } from "./node-view-service.ts";

export interface NodeRouteServices {
  readonly nodes: NodeService;
  readonly nodeChanges: NodeUpdateService;
  readonly views: NodeViewService;
  readonly enrollment: EnrollmentService;
  readonly idempotency: IdempotencyService;
}

export const nodeParams = z.object({ id: reference("The node ID.") });
/** A custom method's colon is not part of the id. */
export const NODE_PATH = "/v1/nodes/:id(^[^:]+)";

/** docs/interface.md §4.4. `engineConfig` at create is an addition (decisions/0003). */
const createNodeSchema = z
  .strictObject({
    projectId: reference("The project ID."),
    planId: reference("`byo` for your own machine, otherwise `<provider>:<type>`, a plan from `GET /v1/plans`."),
    name: nameSchema,
    location: z
      .string()
      .max(1024)
      .optional()
      .describe(
        "Locations of the plan to rent the machine in, separated by commas. They are tried in order; `any` means all others. " +
          "Default: `any`.",
      ),
    providerToken: z
      .string()
      .min(1)
      .max(4096)
      .optional()
      .describe(
        "An API token of the plan's provider with read and write access. Omit for `byo`. Write-only; used only for this node.",
      ),
    directSecrets: z
      .boolean()
      .default(false)
      .describe("Encrypt secrets to the node, so that only the node can decrypt them."),
    engineConfig: engineConfigSchema.optional(),
  })
  .meta({
    examples: [
      {
        projectId: "prj_01kc3b6q2v8r5x0m7n4t9w1yza",
        planId: "byo",
        name: "Local",
        engineConfig: { preset: "fairlead-demo" },
      },
    ],
  });

const updateNodeSchema = z
  .strictObject({
    node: z.record(z.string(), z.unknown()).default({}).describe("A Node, or only the fields to change."),
    updateMask: z
      .string()
      .max(4096)
      .optional()
      .describe(
        "Comma-separated paths to write. A path that is absent from `node` is reset. Default: all fields in `node`.",
      ),
    providerKeys: z
      .record(z.string().max(64), z.string().nullable())
      .default({})
      .describe("Maps a provider to its key, or to null to remove the key. Write-only."),
    providerToken: z
      .string()
      .min(1)
      .max(4096)
      .optional()
      .describe("A new API token of the provider that the node's machine is rented from. Write-only."),
  })
  .meta({ examples: [{ node: { name: "Rack 2" }, updateMask: "name" }] });

const tags = ["Nodes"];
const projectQuery = reference("A project ID.").optional();

const PROVIDER_ERRORS = [
  "provider_token_invalid",
  "provider_token_read_only",
  "provider_token_wrong_project",
  "rate_limit_exceeded",
  "unavailable",
] as const satisfies readonly ErrorCode[];

const createNode = {
  summary: "Create a node",
  description:
    "The identifier is derived from the name and never changes. With a provider's plan, a machine is rented and installs its daemon automatically; " +
    "the node's events show progress. Responses never contain a token of a node.",
  operationId: "createNode",
  tags,
  errors: ["not_found", "permission_denied", "idempotency_mismatch", ...PROVIDER_ERRORS, "not_configured"],
  headers: idempotencyHeaders,
  body: createNodeSchema,
  response: { 200: z.object({ node: nodeSchema }) },
} satisfies FastifySchema;

const listNodes = {
  summary: "List a project's nodes",
  operationId: "listNodes",
  tags,
  errors: ["not_found"],
  querystring: z.strictObject({ projectId: reference("The project ID."), ...pageQuery }),
  response: { 200: z.object({ nodes: z.array(nodeSchema), nextPageToken: z.string() }) },
} satisfies FastifySchema;

const countActiveNodes = {
  summary: "Count active nodes",
  description: "Of one project, or of all projects that the caller is a member of.",
  operationId: "countActiveNodes",
  tags,
  errors: ["not_found"],
  querystring: z.strictObject({ projectId: projectQuery }),
  response: { 200: z.object({ count: z.int32() }) },
} satisfies FastifySchema;

const getNode = {
  summary: "Get a node",
  operationId: "getNode",
  tags,
  errors: ["not_found"],
  params: nodeParams,
  response: { 200: nodeSchema },
} satisfies FastifySchema;

const getNodeBySlug = {
  summary: "Get a node by its identifier",
  description: "Set the project with the query parameter `projectId` or the header `Service-Project-Id`.",
  operationId: "getNodeBySlug",
  tags,
  errors: ["missing_project_header", "not_found"],
  headers: z.looseObject({ "service-project-id": projectQuery }),
  params: z.object({ slug: reference("The node's identifier.") }),
  querystring: z.strictObject({ projectId: projectQuery }),
  response: { 200: nodeSchema },
} satisfies FastifySchema;

const updateNode = {
  summary: "Change a node",
  operationId: "updateNode",
  tags,
  errors: ["not_found", "permission_denied", "node_not_enrolled", ...PROVIDER_ERRORS],
  params: nodeParams,
  body: updateNodeSchema,
  response: { 200: nodeSchema },
} satisfies FastifySchema;

const deleteNode = {
  summary: "Delete a node",
  description:
    "Returns immediately, and the node's identity stops working. As soon as the daemon is informed, it stops and removes the node's workloads. " +
    "To let running calls finish, drain the node first. A rented machine is removed, and the node stays `deleting` until the provider confirms " +
    "that it is gone.",
  operationId: "deleteNode",
  tags,
  errors: ["not_found", "permission_denied"],
  params: nodeParams,
  querystring: z.strictObject({
    abandonMachine: z
      .stringbool()
      .default(false)
      .describe("Remove the node even if its rented machine may still exist and cost money."),
  }),
  response: { 200: z.strictObject({}) },
} satisfies FastifySchema;

const createBootstrapToken = {
  summary: "Issue a bootstrap token",
  description: "The token can be used once, within 30 minutes, for this node only. Unused earlier tokens stop working.",
  operationId: "createBootstrapToken",
  tags,
  errors: ["not_found", "permission_denied"],
  params: nodeParams,
  body: z.strictObject({}).nullish(),
  response: { 200: z.object({ token: z.string(), expiresAt: z.string() }) },
} satisfies FastifySchema;

export function registerNodeRoutes(app: PlatformApp, services: NodeRouteServices): void {
  registerCollectionRoutes(app, services);
  registerItemRoutes(app, services);
}

function registerCollectionRoutes(app: PlatformApp, { nodes, views, idempotency }: NodeRouteServices): void {
  const onRequest = requirePrincipal("user");

  app.post("/v1/nodes", { onRequest, schema: createNode }, async (request, reply) => {
    const caller = principalOf(request, "user");
    const { engineConfig = null, ...input } = request.body;
    const call = { key: request.headers["idempotency-key"], userId: caller.userId, projectId: input.projectId };
    const { answer, replayed } = await idempotency.create(
      { ...call, route: "POST /v1/nodes", body: request.body },
      {
        // The provider may be unavailable or reject the token after the node is created.
        authorize: () => nodes.requireCreate(caller, input.projectId),
        make: (once: Once<NodeRecord>) => nodes.create(caller, { ...input, engineConfig }, once),
        answer: (node) => ({ node: toNewNode(node) }),
        idOf: (node) => node.id,
      },
    );
    if (replayed) void reply.header(REPLAYED_HEADER, "true");
    return answer;
  });

  app.get("/v1/nodes", { onRequest, schema: listNodes }, async (request) => {
    const caller = principalOf(request, "user");
    const { items, nextPageToken } = await paginate(request.query, {
      fetch: (page) => nodes.list(caller, request.query.projectId, page),
      cursorOf: (node) => node.id,
    });
    return { nodes: await views.all(request.query.projectId, items), nextPageToken };
  });

  app.get("/v1/nodes::count-active", { onRequest, schema: countActiveNodes }, async (request) => ({
    count: await nodes.countActive(principalOf(request, "user"), request.query.projectId ?? null),
  }));
}

function registerItemRoutes(app: PlatformApp, { nodes, nodeChanges, views, enrollment }: NodeRouteServices): void {
  const onRequest = requirePrincipal("user");
  const bySelfToo = requirePrincipal("user", "node");

  app.get(NODE_PATH, { onRequest: bySelfToo, schema: getNode }, async (request) =>
    views.one(await nodes.get(principalOf(request, "user", "node"), request.params.id)),
  );

  app.get("/v1/nodes/by-slug/:slug", { onRequest: bySelfToo, schema: getNodeBySlug }, async (request) => {
    const caller = principalOf(request, "user", "node");
    const projectId = projectOf(request, request.query.projectId);
    return views.one(await nodes.getByIdentifier(caller, projectId, request.params.slug));
  });

  app.patch(NODE_PATH, { onRequest, schema: updateNode }, async (request) => {
    const { updateMask = null, ...body } = request.body;
    const caller = principalOf(request, "user");
    return views.one(await nodeChanges.update(caller, request.params.id, { ...body, updateMask }));
  });

  app.delete(NODE_PATH, { onRequest, schema: deleteNode }, async (request) => {
    await nodeChanges.delete(principalOf(request, "user"), request.params.id, request.query);
    return {};
  });

  app.post(`${NODE_PATH}/bootstrap-tokens`, { onRequest, schema: createBootstrapToken }, async (request) => {
    const issued = await enrollment.issueBootstrapToken(principalOf(request, "user"), request.params.id);
    return { token: issued.token, expiresAt: rfc3339(issued.expiresAt) };
  });
}

/** Query `projectId` or header `Service-Project-Id`, if they agree. */
function projectOf(request: FastifyRequest, query: string | undefined): string {
  const header = request.headers["service-project-id"];
  const named = query ?? (typeof header === "string" ? header : undefined);
  if (named === undefined || named === "") {
    throw new DomainError(
      "missing_project_header",
      "Set the node's project with the query parameter `projectId` or the header `Service-Project-Id`.",
      { param: "projectId" },
    );
  }
  if (typeof header === "string" && header !== named) {
    throw new DomainError("invalid_request", "`projectId` and `Service-Project-Id` name different projects.", {
      param: "projectId",
    });
  }
  return named;
}
