import { rfc3339 } from "@fairlead/protocol/clock";
import { engineConfigSchema } from "@fairlead/protocol/engine-config";
import { DomainError } from "@fairlead/protocol/errors";
import { nodeEventSchema, nodeSchema } from "@fairlead/protocol/resources";
import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { pageQuery, paginate } from "../http/pagination.ts";
import type { PlatformApp } from "../http/platform-host.ts";
import { principalOf, requirePrincipal } from "../http/require-principal.ts";
import { idempotencyHeaders, REPLAYED_HEADER } from "../idempotency/idempotency-key.ts";
import type { IdempotencyService } from "../idempotency/idempotency-service.ts";
import type { Once } from "../idempotency/once.ts";
import type { EnrollmentService } from "./enrollment-service.ts";
import { type NodeRecord, nodeNameSchema, toNode } from "./node.ts";
import type { NodeChangeService } from "./node-change-service.ts";
import type { NodeReportService } from "./node-report-service.ts";
import type { NodeService } from "./node-service.ts";

export interface NodeRouteServices {
  readonly nodes: NodeService;
  readonly nodeChanges: NodeChangeService;
  readonly enrollment: EnrollmentService;
  readonly reports: NodeReportService;
  readonly idempotency: IdempotencyService;
}

export const nodeParams = z.object({ id: z.string() });
/** A custom method's colon is no part of the id (design §4, Form). */
export const NODE_PATH = "/v1/nodes/:id(^[^:]+)";

/** Interface §4.4, as people call it. `engineConfig` at create is ours (decisions/0003). */
const createNodeSchema = z.strictObject({
  projectId: z.string(),
  planId: z.string(),
  name: nodeNameSchema,
  location: z.string().max(128).optional(),
  providerToken: z.string().max(4096).optional(),
  directSecrets: z.boolean().default(false),
  engineConfig: engineConfigSchema.optional(),
});

const updateNodeSchema = z.strictObject({
  node: z.record(z.string(), z.unknown()).default({}),
  updateMask: z.string().max(4096).optional(),
  providerKeys: z.record(z.string().max(64), z.string().nullable()).default({}),
});

export function registerNodeRoutes(app: PlatformApp, services: NodeRouteServices): void {
  registerCollectionRoutes(app, services);
  registerItemRoutes(app, services);
  registerObservedRoutes(app, services);
}

function registerCollectionRoutes(app: PlatformApp, { nodes, idempotency }: NodeRouteServices): void {
  const onRequest = requirePrincipal("user");

  app.post(
    "/v1/nodes",
    {
      onRequest,
      schema: {
        headers: idempotencyHeaders,
        body: createNodeSchema,
        response: { 200: z.object({ node: nodeSchema }) },
      },
    },
    async (request, reply) => {
      const caller = principalOf(request, "user");
      const { engineConfig = null, ...input } = request.body;
      const call = { key: request.headers["idempotency-key"], userId: caller.userId, projectId: input.projectId };
      const { answer, replayed } = await idempotency.create(
        { ...call, route: "POST /v1/nodes", body: request.body },
        {
          make: (once: Once<NodeRecord>) => nodes.create(caller, { ...input, engineConfig }, once),
          answer: (node) => ({ node: toNode(node) }),
          idOf: (node) => node.id,
        },
      );
      if (replayed) void reply.header(REPLAYED_HEADER, "true");
      return answer;
    },
  );

  app.get(
    "/v1/nodes",
    {
      onRequest,
      schema: {
        querystring: z.strictObject({ projectId: z.string(), ...pageQuery }),
        response: { 200: z.object({ nodes: z.array(nodeSchema), nextPageToken: z.string() }) },
      },
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
    "/v1/nodes::count-active",
    {
      onRequest,
      schema: {
        querystring: z.strictObject({ projectId: z.string().optional() }),
        response: { 200: z.object({ count: z.int32() }) },
      },
    },
    async (request) => ({
      count: await nodes.countActive(principalOf(request, "user"), request.query.projectId ?? null),
    }),
  );
}

function registerItemRoutes(app: PlatformApp, { nodes, nodeChanges, enrollment }: NodeRouteServices): void {
  const onRequest = requirePrincipal("user");
  const bySelfToo = requirePrincipal("user", "node");

  app.get(
    NODE_PATH,
    { onRequest: bySelfToo, schema: { params: nodeParams, response: { 200: nodeSchema } } },
    async (request) => toNode(await nodes.get(principalOf(request, "user", "node"), request.params.id)),
  );

  app.get(
    "/v1/nodes/by-slug/:slug",
    {
      onRequest: bySelfToo,
      schema: {
        params: z.object({ slug: z.string() }),
        querystring: z.strictObject({ projectId: z.string().optional() }),
        response: { 200: nodeSchema },
      },
    },
    async (request) => {
      const caller = principalOf(request, "user", "node");
      const projectId = projectOf(request, request.query.projectId);
      return toNode(await nodes.getByIdentifier(caller, projectId, request.params.slug));
    },
  );

  app.patch(
    NODE_PATH,
    { onRequest, schema: { params: nodeParams, body: updateNodeSchema, response: { 200: nodeSchema } } },
    async (request) => {
      const { updateMask = null, ...body } = request.body;
      return toNode(await nodeChanges.update(principalOf(request, "user"), request.params.id, { ...body, updateMask }));
    },
  );

  app.delete(
    NODE_PATH,
    { onRequest, schema: { params: nodeParams, response: { 200: z.strictObject({}) } } },
    async (request) => {
      await nodeChanges.delete(principalOf(request, "user"), request.params.id);
      return {};
    },
  );

  app.post(
    `${NODE_PATH}/bootstrap-tokens`,
    {
      onRequest,
      schema: {
        params: nodeParams,
        body: z.strictObject({}).nullish(),
        response: { 200: z.object({ token: z.string(), expiresAt: z.string() }) },
      },
    },
    async (request) => {
      const issued = await enrollment.issueBootstrapToken(principalOf(request, "user"), request.params.id);
      return { token: issued.token, expiresAt: rfc3339(issued.expiresAt) };
    },
  );
}

/** What the node said of itself. */
function registerObservedRoutes(app: PlatformApp, { nodes, reports }: NodeRouteServices): void {
  // The interface names a second path for workloads of the engine kind; the engine is the only kind with a version.
  for (const path of [`${NODE_PATH}/workload-version`, `${NODE_PATH}/engine-version`]) {
    app.get(
      path,
      {
        onRequest: requirePrincipal("user", "node"),
        schema: { params: nodeParams, response: { 200: z.object({ version: z.string() }) } },
      },
      async (request) => {
        const node = await nodes.get(principalOf(request, "user", "node"), request.params.id);
        return { version: await reports.engineVersion(node.id) };
      },
    );
  }

  app.get(
    `${NODE_PATH}/events`,
    {
      onRequest: requirePrincipal("user"),
      schema: {
        params: nodeParams,
        querystring: z.strictObject(pageQuery),
        response: { 200: z.object({ events: z.array(nodeEventSchema), nextPageToken: z.string() }) },
      },
    },
    async (request) => {
      const caller = principalOf(request, "user");
      const { items, nextPageToken } = await paginate(request.query, {
        fetch: (page) => nodes.events(caller, request.params.id, page),
        cursorOf: (event) => event.id,
      });
      return { events: items.map(({ nodeId: _node, at, ...event }) => ({ ...event, at: rfc3339(at) })), nextPageToken };
    },
  );
}

/** Query `projectId` or header `Service-Project-Id`, and not two that differ (design §4, by-slug). */
function projectOf(request: FastifyRequest, query: string | undefined): string {
  const header = request.headers["service-project-id"];
  const named = query ?? (typeof header === "string" ? header : undefined);
  if (named === undefined || named === "") {
    throw new DomainError(
      "missing_project_header",
      "Name the node's project: query `projectId` or header `Service-Project-Id`.",
      { param: "projectId" },
    );
  }
  if (typeof header === "string" && header !== named) {
    throw new DomainError("invalid_request", "`projectId` and `Service-Project-Id` name two projects.", {
      param: "projectId",
    });
  }
  return named;
}
