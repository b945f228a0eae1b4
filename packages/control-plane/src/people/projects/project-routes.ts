import { projectSchema } from "@fairlead/protocol/resources";
import { nameSchema } from "@fairlead/protocol/values/text";
import type { FastifySchema } from "fastify";
import { z } from "zod";
import { idempotencyHeaders, REPLAYED_HEADER } from "../../access/idempotency/idempotency-key.ts";
import type { IdempotencyService } from "../../access/idempotency/idempotency-service.ts";
import type { Once } from "../../access/idempotency/once.ts";
import type { PlatformApp } from "../../http/platform-host.ts";
import { reference } from "../../http/requests/fields.ts";
import { pageQuery, paginate } from "../../http/requests/pagination.ts";
import { principalOf, requirePrincipal } from "../../http/requests/require-principal.ts";
import { modelNameSchema } from "../../models/names/model-name.ts";
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
  description: "Oldest first.",
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
  params: z.object({ id: reference("The project ID.") }),
  response: { 200: projectSchema },
} satisfies FastifySchema;

const updateProject = {
  summary: "Change a project",
  description: "Omitted fields are unchanged. With `defaultModel: null`, the server's default applies again.",
  operationId: "updateProject",
  tags,
  errors: ["not_found", "permission_denied", "project_deleting"],
  params: z.object({ id: reference("The project ID.") }),
  body: z
    .strictObject({
      name: nameSchema.optional(),
      defaultModel: modelNameSchema
        .nullable()
        .optional()
        .describe("`<provider>/<model>` or an alias, for calls that do not name a model."),
    })
    .meta({ examples: [{ name: "Support and sales", defaultModel: "local/tinychat-6m" }] }),
  response: { 200: projectSchema },
} satisfies FastifySchema;

const deleteProject = {
  summary: "Delete a project",
  description:
    "Cannot be undone. The keys stop working immediately, and nothing new can be created. The nodes finish running calls, for up to 30 seconds, and are " +
    "deleted, followed by the members, invitations and chats. Meanwhile owners see the project with `deletingSince`; after that, it returns 404.",
  operationId: "deleteProject",
  tags,
  errors: ["not_found", "permission_denied"],
  params: z.object({ id: reference("The project ID.") }),
  querystring: z.strictObject({
    confirmName: z
      .string({
        error: "must be the project's name, because its nodes, keys, members and chats are deleted permanently",
      })
      .describe("The project's name, to confirm the deletion."),
  }),
  response: { 200: z.object({}) },
} satisfies FastifySchema;

/** docs/interface.md §4.2: create and get; the rest are additions. */
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
