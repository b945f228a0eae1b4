import { invitationSchema, roleSchema } from "@fairlead/protocol/resources";
import type { FastifySchema } from "fastify";
import { z } from "zod";
import { idempotencyHeaders, REPLAYED_HEADER } from "../../access/idempotency/idempotency-key.ts";
import type { IdempotencyService } from "../../access/idempotency/idempotency-service.ts";
import type { Once } from "../../access/idempotency/once.ts";
import type { RateLimit } from "../../http/limits/rate-limit.ts";
import { limitCallsOfUser } from "../../http/limits/rate-limit-guards.ts";
import type { PlatformApp } from "../../http/platform-host.ts";
import { reference } from "../../http/requests/fields.ts";
import { pageQuery, paginate } from "../../http/requests/pagination.ts";
import { principalOf, requirePrincipal } from "../../http/requests/require-principal.ts";
import { emailSchema } from "../users/user.ts";
import type { CreatedInvitation, InvitationService } from "./invitation-service.ts";
import { toInvitation } from "./member.ts";

export interface InvitationRouteServices {
  readonly invitations: InvitationService;
  readonly idempotency: IdempotencyService;
  readonly limit: RateLimit;
}

const tags = ["Members"];

const project = { project_id: reference("The project ID.") };

const inviteMember = {
  summary: "Invite a user to a project",
  description:
    "The invited user signs in with `url`. It works only for this email address, once, within 7 days, and is returned only " +
    "once; a retry with the same `Idempotency-Key` fails with 409. No email is sent. Earlier invitations of the same address stop working.",
  operationId: "inviteMember",
  tags,
  errors: [
    "not_found",
    "permission_denied",
    "already_exists",
    "idempotency_mismatch",
    "project_deleting",
    "rate_limit_exceeded",
  ],
  headers: idempotencyHeaders,
  params: z.object(project),
  body: z
    .strictObject({
      email: emailSchema.describe("The email address of the invited user. Stored in lowercase."),
      role: roleSchema,
    })
    .meta({ examples: [{ email: "ben@example.org", role: "member" }] }),
  response: { 200: z.object({ invitation: invitationSchema, url: z.string() }) },
} satisfies FastifySchema;

const listInvitations = {
  summary: "List open invitations",
  description: "Oldest first. Only for owners and admins.",
  operationId: "listInvitations",
  tags,
  errors: ["not_found", "permission_denied"],
  params: z.object(project),
  querystring: z.strictObject(pageQuery),
  response: { 200: z.object({ invitations: z.array(invitationSchema), nextPageToken: z.string() }) },
} satisfies FastifySchema;

const revokeInvitation = {
  summary: "Revoke an invitation",
  operationId: "revokeInvitation",
  tags,
  errors: ["not_found", "permission_denied", "project_deleting"],
  params: z.object({ ...project, id: reference("The invitation ID.") }),
  response: { 200: z.object({}) },
} satisfies FastifySchema;

export function registerInvitationRoutes(app: PlatformApp, services: InvitationRouteServices): void {
  const { invitations, idempotency, limit } = services;
  const onRequest = requirePrincipal("user");

  app.post(
    "/v1/projects/:project_id/members",
    { onRequest: [onRequest, limitCallsOfUser(limit)], schema: inviteMember },
    async (request, reply) => {
      const { project_id: projectId } = request.params;
      const caller = principalOf(request, "user");
      const call = { key: request.headers["idempotency-key"], userId: caller.userId, projectId };
      const { answer, replayed } = await idempotency.create(
        { ...call, route: "POST /v1/projects/{project_id}/members", body: request.body },
        {
          make: (once: Once<CreatedInvitation>) => invitations.create(caller, { projectId, ...request.body }, once),
          answer: ({ invitation, url }) => ({ invitation: toInvitation(invitation), url }),
          idOf: ({ invitation }) => invitation.id,
          secret: true,
        },
      );
      if (replayed) void reply.header(REPLAYED_HEADER, "true");
      return answer;
    },
  );

  app.get("/v1/projects/:project_id/invitations", { onRequest, schema: listInvitations }, async (request) => {
    const caller = principalOf(request, "user");
    const { items, nextPageToken } = await paginate(request.query, {
      fetch: (page) => invitations.list(caller, request.params.project_id, page),
      cursorOf: ({ id }) => id,
    });
    return { invitations: items.map(toInvitation), nextPageToken };
  });

  app.delete("/v1/projects/:project_id/invitations/:id", { onRequest, schema: revokeInvitation }, async (request) => {
    const { project_id: projectId, id } = request.params;
    await invitations.revoke(principalOf(request, "user"), { projectId, id });
    return {};
  });
}
