import { projectSchema } from "@fairlead/protocol/resources";
import { nameSchema } from "@fairlead/protocol/text";
import type { FastifySchema } from "fastify";
import { z } from "zod";
import { reference } from "../http/fields.ts";
import { pageQuery, paginate } from "../http/pagination.ts";
import type { PlatformApp } from "../http/platform-host.ts";
import { principalOf, requirePrincipal } from "../http/require-principal.ts";
import { idempotencyHeaders, REPLAYED_HEADER } from "../idempotency/idempotency-key.ts";
import type { IdempotencyService } from "../idempotency/idempotency-service.ts";
import type { Once } from "../idempotency/once.ts";
import { modelNameSchema } from "../providers/model-name.ts";
import { type ProjectRecord, toProject } from "./project.ts";
import type { ProjectRemovalService } from "./project-removal-service.ts";
import type { ProjectService } from "./project-service.ts";

export interface ProjectRouteServices {
  readonly projects: ProjectService;
  readonly projectRemoval: ProjectRemovalService;
  readonly idempotency: IdempotencyService;
}

const tags = ["Projects"];

const createProject = {
  summary: "Create a project",
  description: "The caller becomes its owner.",
  operationId: "createProject",
  tags,
  errors: ["idempotency_mismatch"],
  headers: idempotencyHeaders,
  body: z.strictObject({ name: nameSchema }).meta({ examples: [{ name: "Support" }] }),
  response: { 200: z.object({ project: projectSchema }) },
} satisfies FastifySchema;

const listProjects = {
  summary: "List your projects",
  description: "The oldest first.",
  operationId: "listProjects",
  tags,
  querystring: z.object(pageQuery),
  response: { 200: z.object({ projects: z.array(projectSchema), nextPageToken: z.string() }) },
} satisfies FastifySchema;

const getProject = {
  summary: "Get a project",
  operationId: "getProject",
  tags,
  errors: ["not_found"],
  params: z.object({ id: reference("The project's id.") }),
  response: { 200: projectSchema },
} satisfies FastifySchema;

const updateProject = {
  summary: "Change a project",
  description: "What is left out stays as it is. `defaultModel`: null goes back to what the server's settings say.",
  operationId: "updateProject",
  tags,
  errors: ["not_found", "permission_denied", "project_deleting"],
  params: z.object({ id: reference("The project's id.") }),
  body: z
    .strictObject({
      name: nameSchema.optional(),
      defaultModel: modelNameSchema
        .nullable()
        .optional()
        .describe("`<provider>/<model>` or an alias, for calls that name no model."),
    })
    .meta({ examples: [{ name: "Support and sales", defaultModel: "local/tinychat-6m" }] }),
  response: { 200: projectSchema },
} satisfies FastifySchema;

const deleteProject = {
  summary: "Delete a project",
  description:
    "For good. Its keys stop at once and nothing new can be made in it; its nodes finish the calls that run, for 30 seconds at most, and are " +
    "deleted; then its members, invitations and chats are. Until that is done, its owners find it with `deletingSince`; then it is 404.",
  operationId: "deleteProject",
  tags,
  errors: ["not_found", "permission_denied"],
  params: z.object({ id: reference("The project's id.") }),
  querystring: z.strictObject({
    confirmName: z
      .string({ error: "must repeat the project's name, since its nodes, keys, members and chats go with it for good" })
      .describe("The project's name, so that nobody deletes the wrong one."),
  }),
  response: { 200: z.object({}) },
} satisfies FastifySchema;

/** Interface §4.2: create and get; the rest is ours (design §4). */
export function registerProjectRoutes(app: PlatformApp, services: ProjectRouteServices): void {
  const { projects, projectRemoval, idempotency } = services;
  const onRequest = requirePrincipal("user");

  app.post("/v1/projects", { onRequest, schema: createProject }, async (request, reply) => {
    const caller = principalOf(request, "user");
    const call = { key: request.headers["idempotency-key"], userId: caller.userId, projectId: null };
    const { answer, replayed } = await idempotency.create(
      { ...call, route: "POST /v1/projects", body: request.body },
      {
        make: (once: Once<ProjectRecord>) => projects.create(caller, request.body, once),
        answer: (project) => ({ project: toProject(project) }),
        idOf: (project) => project.id,
      },
    );
    if (replayed) void reply.header(REPLAYED_HEADER, "true");
    return answer;
  });

  app.get("/v1/projects", { onRequest, schema: listProjects }, async (request) => {
    const caller = principalOf(request, "user");
    const { items, nextPageToken } = await paginate(request.query, {
      fetch: (page) => projects.list(caller, page),
      cursorOf: (project) => project.id,
    });
    return { projects: items.map(toProject), nextPageToken };
  });

  app.get("/v1/projects/:id", { onRequest, schema: getProject }, async (request) =>
    toProject(await projects.get(principalOf(request, "user"), request.params.id)),
  );

  app.patch("/v1/projects/:id", { onRequest, schema: updateProject }, async (request) =>
    toProject(await projects.update(principalOf(request, "user"), request.params.id, request.body)),
  );

  app.delete("/v1/projects/:id", { onRequest, schema: deleteProject }, async (request) => {
    const { confirmName } = request.query;
    await projectRemoval.request(principalOf(request, "user"), { projectId: request.params.id, confirmName });
    return {};
  });
}
