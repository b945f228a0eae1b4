import { type Node, nodeSchema } from "@fairlead/protocol/resources";
import type { FastifySchema } from "fastify";
import { z } from "zod";
import type { PlatformApp } from "../http/platform-host.ts";
import { principalOf, requirePrincipal } from "../http/require-principal.ts";
import { idempotencyHeaders, REPLAYED_HEADER } from "../idempotency/idempotency-key.ts";
import type { IdempotencyService } from "../idempotency/idempotency-service.ts";
import type { Once } from "../idempotency/once.ts";
import type { NodeLifeService } from "./node-life-service.ts";
import { NODE_PATH, nodeParams } from "./node-routes.ts";
import type { NodeViewService } from "./node-view-service.ts";
import { ENGINE_WORKLOAD } from "./plan-desired.ts";

export interface NodeLifeRouteServices {
  readonly life: NodeLifeService;
  readonly views: NodeViewService;
  readonly idempotency: IdempotencyService;
}

const tags = ["Nodes"];
const DEFAULT_TIMEOUT_SECONDS = 300;
const MAX_TIMEOUT_SECONDS = 86_400;

const drainNode = {
  summary: "Take a node out of service",
  description:
    "It takes no new calls, and its agents stop; calls that run may end, for at most `timeoutSeconds`; then its engine stops, and the node is " +
    "`drained` until it is resumed. Answers at once: the node's status and events tell how it goes. Asked again, it changes nothing.",
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
        .describe("How long running calls are waited for."),
    })
    .nullish(),
  response: { 200: nodeSchema },
} satisfies FastifySchema;

const resumeNode = {
  summary: "Put a drained node back into service",
  description: "A drain that still runs is called off. The node is `active` again once its workloads are ready.",
  operationId: "resumeNode",
  tags,
  errors: ["not_found", "permission_denied"],
  params: nodeParams,
  body: z.strictObject({}).nullish(),
  response: { 200: nodeSchema },
} satisfies FastifySchema;

const restartWorkload = {
  summary: "Start a node's engine anew",
  description:
    "A new container of the same config, by the way of an update: with `start-first` the new one takes over once it is ready, and " +
    "no call fails; with `stop-first` the old one ends first. One that does not become ready is rolled back. Sent again with the " +
    "same `Idempotency-Key` it restarts nothing, and answers what it answered.",
  operationId: "restartNodeWorkload",
  tags,
  errors: ["not_found", "permission_denied", "node_not_enrolled", "node_out_of_service", "idempotency_mismatch"],
  headers: idempotencyHeaders,
  params: nodeParams,
  body: z.strictObject({ workload: z.literal(ENGINE_WORKLOAD).default(ENGINE_WORKLOAD) }).nullish(),
  response: { 200: nodeSchema },
} satisfies FastifySchema;

export function registerNodeLifeRoutes(app: PlatformApp, { life, views, idempotency }: NodeLifeRouteServices): void {
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
      // Which node it is belongs to what a repeat must repeat.
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
