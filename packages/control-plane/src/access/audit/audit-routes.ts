import { auditEventSchema } from "@fairlead/protocol/resources";
import type { FastifySchema } from "fastify";
import { z } from "zod";
import type { PlatformApp } from "../../http/platform-host.ts";
import { moment, reference } from "../../http/requests/fields.ts";
import { pageQuery, paginate } from "../../http/requests/pagination.ts";
import { principalOf, requirePrincipal } from "../../http/requests/require-principal.ts";
import { auditActionSchema, toAuditEvent } from "./audit.ts";
import type { AuditReadService } from "./audit-read-service.ts";

const tags = ["Audit"];

const filterQuery = {
  action: auditActionSchema.optional().describe("Only events of this action."),
  actorId: reference("Only events of this user or node.").optional(),
  from: moment("Events at or after this time (RFC 3339)."),
  to: moment("Events before this time (RFC 3339)."),
  ...pageQuery,
};

const response = { 200: z.object({ auditEvents: z.array(auditEventSchema), nextPageToken: z.string() }) };

const listProjectAuditEvents = {
  summary: "List a project's audit events",
  description: "Newest first. Only for owners and admins of the project.",
  operationId: "listProjectAuditEvents",
  tags,
  errors: ["not_found", "permission_denied"],
  params: z.object({ id: reference("The project ID.") }),
  querystring: z.strictObject(filterQuery),
  response,
} satisfies FastifySchema;

const listAuditEvents = {
  summary: "List the platform's audit events",
  description: "Newest first, across all projects and outside projects. Only for platform administrators.",
  operationId: "listAuditEvents",
  tags,
  errors: ["permission_denied"],
  querystring: z.strictObject({ projectId: reference("Only events of this project.").optional(), ...filterQuery }),
  response,
} satisfies FastifySchema;

export function registerAuditRoutes(app: PlatformApp, auditLog: AuditReadService): void {
  const onRequest = requirePrincipal("user");

  app.get("/v1/projects/:id/audit", { onRequest, schema: listProjectAuditEvents }, async (request) => {
    const caller = principalOf(request, "user");
    const { pageSize, pageToken, ...filter } = request.query;
    const { items, nextPageToken } = await paginate(
      { pageSize, pageToken },
      {
        fetch: (page) => auditLog.list(caller, request.params.id, { ...filter, page }),
        cursorOf: (event) => event.id,
      },
    );
    return { auditEvents: items.map(toAuditEvent), nextPageToken };
  });

  app.get("/v1/audit", { onRequest, schema: listAuditEvents }, async (request) => {
    const caller = principalOf(request, "user");
    const { pageSize, pageToken, ...filter } = request.query;
    const { items, nextPageToken } = await paginate(
      { pageSize, pageToken },
      { fetch: (page) => auditLog.listAll(caller, { ...filter, page }), cursorOf: (event) => event.id },
    );
    return { auditEvents: items.map(toAuditEvent), nextPageToken };
  });
}
