import { auditEventSchema } from "@fairlead/protocol/resources";
import type { FastifySchema } from "fastify";
import { z } from "zod";
import { moment, reference } from "../http/fields.ts";
import { pageQuery, paginate } from "../http/pagination.ts";
import type { PlatformApp } from "../http/platform-host.ts";
import { principalOf, requirePrincipal } from "../http/require-principal.ts";
import { auditActionSchema, toAuditEvent } from "./audit.ts";
import type { AuditReadService } from "./audit-read-service.ts";

const tags = ["Audit"];

const filterQuery = {
  action: auditActionSchema.optional().describe("Events of this action alone."),
  actorId: reference("Events of this user or node alone.").optional(),
  from: moment("Events at or after this time (RFC 3339)."),
  to: moment("Events before this time (RFC 3339)."),
  ...pageQuery,
};

const response = { 200: z.object({ auditEvents: z.array(auditEventSchema), nextPageToken: z.string() }) };

const listProjectAuditEvents = {
  summary: "List what was done in a project",
  description: "The newest first. For owners and admins of the project.",
  operationId: "listProjectAuditEvents",
  tags,
  errors: ["not_found", "permission_denied"],
  params: z.object({ id: reference("The project's id.") }),
  querystring: z.strictObject(filterQuery),
  response,
} satisfies FastifySchema;

const listAuditEvents = {
  summary: "List what was done on the platform",
  description: "The newest first, of every project and of none. For platform administrators.",
  operationId: "listAuditEvents",
  tags,
  errors: ["permission_denied"],
  querystring: z.strictObject({ projectId: reference("Events of this project alone.").optional(), ...filterQuery }),
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
