import { type Node, nodeSchema } from "@fairlead/protocol/resources";
import type { FastifySchema } from "fastify";
import { z } from "zod";
import { idempotencyHeaders, REPLAYED_HEADER } from "../../../access/idempotency/idempotency-key.ts";
import type { IdempotencyService } from "../../../access/idempotency/idempotency-service.ts";
import type { Once } from "../../../access/idempotency/once.ts";
import type { PlatformApp } from "../../../http/platform-host.ts";
import { principalOf, requirePrincipal } from "../../../http/requests/require-principal.ts";
import { ENGINE_WORKLOAD } from "../desired/plan-desired.ts";
import { NODE_PATH, nodeParams } from "../node-routes.ts";
import type { NodeViewService } from "../node-view-service.ts";
import { LOG_FORMS, logAnswer, logQueryFields, logText } from "./log-route-schemas.ts";
import type { NodeActionsService } from "./node-actions-service.ts";
import type { NodeLogService } from "./node-log-service.ts";

const getNodeLogs = {
  summary: "Read the logs of a node's engine",
  description: `${LOG_FORMS} Only for owners and admins, and recorded in the audit log, because engine logs may contain prompts.`,
  operationId: "getNodeLogs",
  tags: ["Nodes"],
  errors: ["not_found", "permission_denied", "no_running_engine", "unavailable", "overloaded"],
  params: nodeParams,
  querystring: z.strictObject({
    workload: z.literal(ENGINE_WORKLOAD).default(ENGINE_WORKLOAD),
    ...logQueryFields,
  }),
  response: { 200: logAnswer },
} satisfies FastifySchema;

export function registerNodeLogRoutes(app: PlatformApp, logs: NodeLogService): void {
  const onRequest = requirePrincipal("user");
  app.get(`${NODE_PATH}/logs`, { onRequest, schema: getNodeLogs }, async (request, reply) => {
    const lines = await logs.open(principalOf(request, "user"), request.params.id, request.query);
    return reply.send(logText(request, reply, lines));
  });
}

export interface NodeActionRouteServices {
  readonly life: NodeActionsService;
  readonly views: NodeViewService;
  readonly idempotency: IdempotencyService;
}

const tags = ["Nodes"];
const DEFAULT_TIMEOUT_SECONDS = 300;
const MAX_TIMEOUT_SECONDS = 86_400;

const drainNode = {
  summary: "Drain a node",
  description:
    "The node takes no new calls, and its agents stop. Running calls have up to `timeoutSeconds` to finish. Then its engine stops, and the node stays " +
    "`drained` until it is resumed. Returns immediately; the node's status and events show progress. Repeating the call has no effect.",
  operationId: "drainNode",
  tags,
  errors: ["not_found", "permission_denied", "node_not_enrolled"],
  params: nodeParams,
  body: z
    .strictObject({
      timeoutSeconds: z
        .number()
        .int()
        .min(0)
        .max(MAX_TIMEOUT_SECONDS)
        .default(DEFAULT_TIMEOUT_SECONDS)
        .describe("Maximum number of seconds to wait for running calls."),
    })
    .nullish(),
  response: { 200: nodeSchema },
} satisfies FastifySchema;

const resumeNode = {
  summary: "Resume a drained node",
  description: "Cancels a drain in progress. The node becomes `active` once its workloads are ready.",
  operationId: "resumeNode",
  tags,
  errors: ["not_found", "permission_denied"],
  params: nodeParams,
  body: z.strictObject({}).nullish(),
  response: { 200: nodeSchema },
} satisfies FastifySchema;

const restartWorkload = {
  summary: "Restart a node's engine (rolling)",
  description:
    "Creates a new container with the same config, as in an update. With `start-first`, the new container takes over once it is ready, and " +
    "no calls fail; with `stop-first`, the old one stops first. If the new one does not become ready, it is rolled back. A retry with the " +
    "same `Idempotency-Key` does not restart again and returns the first response.",
  operationId: "restartNodeWorkload",
  tags,
  errors: ["not_found", "permission_denied", "node_not_enrolled", "node_out_of_service", "idempotency_mismatch"],
  headers: idempotencyHeaders,
  params: nodeParams,
  body: z.strictObject({ workload: z.literal(ENGINE_WORKLOAD).default(ENGINE_WORKLOAD) }).nullish(),
  response: { 200: nodeSchema },
} satisfies FastifySchema;

export function registerNodeActionRoutes(
  app: PlatformApp,
  { life, views, idempotency }: NodeActionRouteServices,
): void {
  const onRequest = requirePrincipal("user");

  app.post(`${NODE_PATH}::drain`, { onRequest, schema: drainNode }, async (request) => {
    const seconds = request.body?.timeoutSeconds ?? DEFAULT_TIMEOUT_SECONDS;
    return views.one(await life.drain(principalOf(request, "user"), request.params.id, seconds * 1000));
  });

  app.post(`${NODE_PATH}::resume`, { onRequest, schema: resumeNode }, async (request) =>
    views.one(await life.resume(principalOf(request, "user"), request.params.id)),
  );

  app.post(`${NODE_PATH}::restart-workload`, { onRequest, schema: restartWorkload }, async (request, reply) => {
    const caller = principalOf(request, "user");
    const { id } = request.params;
    const call = { key: request.headers["idempotency-key"], userId: caller.userId, projectId: null };
    const { workload } = request.body ?? { workload: ENGINE_WORKLOAD };
    const { answer, replayed } = await idempotency.create(
      // The node's id is part of what a retry must repeat.
      { ...call, route: "POST /v1/nodes/{id}:restart-workload", body: { id, workload } },
      {
        make: (once: Once<Node>) => life.restart(caller, id, once),
        answer: (node) => node,
        idOf: (node) => node.id,
      },
    );
    if (replayed) void reply.header(REPLAYED_HEADER, "true");
    return answer;
  });
}
