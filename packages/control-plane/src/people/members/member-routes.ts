import { DomainError } from "@fairlead/protocol/errors";
import { memberSchema, roleSchema } from "@fairlead/protocol/resources";
import type { FastifySchema } from "fastify";
import { z } from "zod";
import type { PlatformApp } from "../../http/platform-host.ts";
import { reference } from "../../http/requests/fields.ts";
import { pageQuery, paginate } from "../../http/requests/pagination.ts";
import { principalOf, requirePrincipal } from "../../http/requests/require-principal.ts";
import { toMember } from "./member.ts";
import type { MemberService } from "./member-service.ts";

const tags = ["Members"];

const project = { project_id: reference("The project ID.") };
const member = { ...project, user_id: reference("The member's user ID.") };

const listMembers = {
  summary: "List a project's members",
  description: "Sorted by user ID.",
  operationId: "listMembers",
  tags,
  errors: ["not_found"],
  params: z.object(project),
  querystring: z.strictObject(pageQuery),
  response: { 200: z.object({ members: z.array(memberSchema), nextPageToken: z.string() }) },
} satisfies FastifySchema;

const updateMember = {
  summary: "Change a member's role",
  description:
    "Admins can change all members except owners. Only owners can change owners or appoint new ones; the last owner must remain one. Keys and " +
    "invitations that the new role could not create are disabled or revoked.",
  operationId: "updateMember",
  tags,
  errors: ["not_found", "permission_denied", "last_owner", "project_deleting"],
  params: z.object(member),
  body: z
    .strictObject({
      projectId: reference("The project in the path.").optional(),
      userId: reference("The user in the path.").optional(),
      role: roleSchema,
    })
    .meta({ examples: [{ role: "admin" }] }),
  response: { 200: memberSchema },
} satisfies FastifySchema;

const removeMember = {
  summary: "Remove a member, or leave",
  description:
    "Every member can leave, except the last owner. The member's keys in this project are disabled immediately, and their open invitations " +
    "are revoked.",
  operationId: "removeMember",
  tags,
  errors: ["not_found", "permission_denied", "last_owner", "project_deleting"],
  params: z.object(member),
  response: { 200: z.object({}) },
} satisfies FastifySchema;

/** docs/interface.md §4.2, members; the list is an addition. */
export function registerMemberRoutes(app: PlatformApp, members: MemberService): void {
  const onRequest = requirePrincipal("user");

  app.get("/v1/projects/:project_id/members", { onRequest, schema: listMembers }, async (request) => {
    const caller = principalOf(request, "user");
    const { items, nextPageToken } = await paginate(request.query, {
      fetch: (page) => members.list(caller, request.params.project_id, page),
      cursorOf: ({ userId }) => userId,
    });
    return { members: items.map(toMember), nextPageToken };
  });

  app.patch("/v1/projects/:project_id/members/:user_id", { onRequest, schema: updateMember }, async (request) => {
    const { project_id: projectId, user_id: userId } = request.params;
    const { role, ...repeated } = request.body;
    refuseOther("projectId", repeated.projectId, projectId);
    refuseOther("userId", repeated.userId, userId);
    return toMember(await members.update(principalOf(request, "user"), { projectId, userId, role }));
  });

  app.delete("/v1/projects/:project_id/members/:user_id", { onRequest, schema: removeMember }, async (request) => {
    const { project_id: projectId, user_id: userId } = request.params;
    await members.remove(principalOf(request, "user"), { projectId, userId });
    return {};
  });
}

/** The body repeats the path's ids (docs/interface.md §4.2); a mismatch is an error. */
function refuseOther(param: string, repeated: string | undefined, id: string): void {
  if (repeated === undefined || repeated === id) return;
  throw new DomainError("invalid_request", `\`${param}\`: must match the path.`, { param });
}
