import { DomainError } from "@fairlead/protocol/errors";
import { memberSchema, roleSchema } from "@fairlead/protocol/resources";
import type { FastifySchema } from "fastify";
import { z } from "zod";
import { reference } from "../http/fields.ts";
import { pageQuery, paginate } from "../http/pagination.ts";
import type { PlatformApp } from "../http/platform-host.ts";
import { principalOf, requirePrincipal } from "../http/require-principal.ts";
import { toMember } from "./member.ts";
import type { MemberService } from "./member-service.ts";

const tags = ["Members"];

const project = { project_id: reference("The project's id.") };
const member = { ...project, user_id: reference("The member's user id.") };

const listMembers = {
  summary: "List a project's members",
  description: "In the order of their user ids.",
  operationId: "listMembers",
  tags,
  errors: ["not_found"],
  params: z.object(project),
  querystring: z.strictObject(pageQuery),
  response: { 200: z.object({ members: z.array(memberSchema), nextPageToken: z.string() }) },
} satisfies FastifySchema;

const updateMember = {
  summary: "Give a member another role",
  description:
    "Admins manage whoever is no owner; only owners touch owners or make them; the last owner stays one. With a role go the keys " +
    "and the invitations that the new one could not make.",
  operationId: "updateMember",
  tags,
  errors: ["not_found", "permission_denied", "last_owner", "project_deleting"],
  params: z.object(member),
  body: z
    .strictObject({
      projectId: reference("The project of the path.").optional(),
      userId: reference("The user of the path.").optional(),
      role: roleSchema,
    })
    .meta({ examples: [{ role: "admin" }] }),
  response: { 200: memberSchema },
} satisfies FastifySchema;

const removeMember = {
  summary: "Remove a member, or leave",
  description:
    "Anybody may leave, but the last owner. The member's keys in this project are disabled at once, and their open invitations " +
    "taken back.",
  operationId: "removeMember",
  tags,
  errors: ["not_found", "permission_denied", "last_owner", "project_deleting"],
  params: z.object(member),
  response: { 200: z.object({}) },
} satisfies FastifySchema;

/** Interface §4.2, members; the list is ours (design §4). */
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

/** The body repeats the path's ids (interface §4.2); two that differ are a mistake to tell of. */
function refuseOther(param: string, repeated: string | undefined, id: string): void {
  if (repeated === undefined || repeated === id) return;
  throw new DomainError("invalid_request", `\`${param}\`: must be the one of the path.`, { param });
}
