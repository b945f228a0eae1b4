import { bearerToken } from "@fairlead/hosting/requests/bearer";
import {
  enrollAnswerSchema,
  enrollRequestSchema,
  identityTokenRequestSchema,
  identityTokenSchema,
} from "@fairlead/protocol/enrollment";
import { DomainError } from "@fairlead/protocol/errors";
import { readyRequestSchema } from "@fairlead/protocol/workload";
import type { FastifySchema } from "fastify";
import { z } from "zod";
import { limitFailuresOfNode } from "../../../http/limits/rate-limit-guards.ts";
import type { RateLimits } from "../../../http/limits/rate-limits.ts";
import type { PlatformApp } from "../../../http/platform-host.ts";
import { originOf, principalOf, requirePrincipal } from "../../../http/requests/require-principal.ts";
import type { EnrollmentService } from "../enrolment/enrollment-service.ts";
import { NODE_PATH, nodeParams } from "../node-routes.ts";
import { nodeNotFound } from "../node-service.ts";
import type { NodeReportService } from "../observed/node-report-service.ts";

export interface NodeDaemonRouteServices {
  readonly enrollment: EnrollmentService;
  readonly reports: NodeReportService;
  readonly limits: Pick<RateLimits, "daemons">;
}

const tags = ["Daemons"];

const enrollNode = {
  summary: "Enroll a daemon as this node",
  description: "The bootstrap token is bound to the first public key. The same key may repeat the call.",
  operationId: "enrollNode",
  tags,
  security: [{ bootstrapToken: [] }],
  errors: ["not_found", "bootstrap_token_used", "rate_limit_exceeded"],
  params: nodeParams,
  body: enrollRequestSchema,
  response: { 200: enrollAnswerSchema },
} satisfies FastifySchema;

const createIdentityToken = {
  summary: "Renew a node's identity token",
  description: "The credential is the assertion in the body, signed with the node's own key.",
  operationId: "createIdentityToken",
  tags,
  errors: ["invalid_credential", "expired_credential", "rate_limit_exceeded"],
  params: nodeParams,
  body: identityTokenRequestSchema,
  response: { 200: identityTokenSchema },
} satisfies FastifySchema;

const reportNodeReady = {
  summary: "Report that the node's workloads are ready",
  description: "Called by the node itself. A report for an older generation is accepted and ignored.",
  operationId: "reportNodeReady",
  tags,
  errors: ["not_found", "rate_limit_exceeded"],
  params: nodeParams,
  body: readyRequestSchema,
  response: { 200: z.strictObject({}) },
} satisfies FastifySchema;

/** Routes called by daemons. Bodies may contain fields of newer daemons. */
export function registerNodeDaemonRoutes(app: PlatformApp, services: NodeDaemonRouteServices): void {
  const { enrollment, reports, limits } = services;
  const limited = limitFailuresOfNode(limits.daemons);

  app.post(`${NODE_PATH}/enroll`, { onRequest: limited, schema: enrollNode }, async (request) => {
    const bootstrapToken = bearerToken(request.headers.authorization);
    if (bootstrapToken === null) {
      throw new DomainError("invalid_credential", "Send the bootstrap token as `Authorization: Bearer flb_…`.");
    }
    return enrollment.enroll({
      nodeId: request.params.id,
      bootstrapToken,
      request: request.body,
      origin: originOf(request),
    });
  });

  app.post(`${NODE_PATH}/identity-tokens`, { onRequest: limited, schema: createIdentityToken }, async (request) =>
    enrollment.renewIdentity(request.params.id, request.body.assertion),
  );

  // docs/interface.md §4.4, ready: requires the identity token of that node.
  app.post(`${NODE_PATH}/ready`, { onRequest: requirePrincipal("node"), schema: reportNodeReady }, async (request) => {
    const { nodeId } = principalOf(request, "node");
    if (nodeId !== request.params.id) throw nodeNotFound();
    if (request.body.id !== nodeId) {
      throw new DomainError("invalid_request", "`id`: must be the node in the path.", { param: "id" });
    }
    await reports.ready(nodeId, request.body);
    return {};
  });
}
