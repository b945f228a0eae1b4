import { projectSchema } from "@fairlead/protocol/resources";
import type { FastifySchema } from "fastify";
import { z } from "zod";
import { reference } from "../http/fields.ts";
import { pageQuery, paginate } from "../http/pagination.ts";
import type { PlatformApp } from "../http/platform-host.ts";
import { principalOf, requirePrincipal } from "../http/require-principal.ts";
import { idempotencyHeaders, REPLAYED_HEADER } from "../idempotency/idempotency-key.ts";
import type { IdempotencyService } from "../idempotency/idempotency-service.ts";
import type { Once } from "../idempotency/once.ts";
import { type ProjectRecord, projectNameSchema, toProject } from "./project.ts";
import type { ProjectService } from "./project-service.ts";

export interface ProjectRouteServices {
  readonly projects: ProjectService;
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
  body: z.strictObject({ name: projectNameSchema }).meta({ examples: [{ name: "Support" }] }),
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

/** Interface §4.2: create and get; the list is ours (design §4). */
export function registerProjectRoutes(app: PlatformApp, { projects, idempotency }: ProjectRouteServices): void {
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
}
