import { projectSchema } from "@fairlead/protocol/resources";
import { z } from "zod";
import { pageQuery, paginate } from "../http/pagination.ts";
import type { PlatformApp } from "../http/platform-host.ts";
import { principalOf, requirePrincipal } from "../http/require-principal.ts";
import { projectNameSchema, toProject } from "./project.ts";
import type { ProjectService } from "./project-service.ts";

/** Interface §4.2: create and get; the list is ours (design §4). */
export function registerProjectRoutes(app: PlatformApp, projects: ProjectService): void {
  const onRequest = requirePrincipal("user");

  app.post(
    "/v1/projects",
    {
      onRequest,
      schema: {
        body: z.strictObject({ name: projectNameSchema }),
        response: { 200: z.object({ project: projectSchema }) },
      },
    },
    async (request) => ({
      project: toProject(await projects.create(principalOf(request, "user"), request.body)),
    }),
  );

  app.get(
    "/v1/projects",
    {
      onRequest,
      schema: {
        querystring: z.object(pageQuery),
        response: { 200: z.object({ projects: z.array(projectSchema), nextPageToken: z.string() }) },
      },
    },
    async (request) => {
      const caller = principalOf(request, "user");
      const { items, nextPageToken } = await paginate(request.query, {
        fetch: (page) => projects.list(caller, page),
        cursorOf: (project) => project.id,
      });
      return { projects: items.map(toProject), nextPageToken };
    },
  );

  app.get(
    "/v1/projects/:id",
    { onRequest, schema: { params: z.object({ id: z.string() }), response: { 200: projectSchema } } },
    async (request) => toProject(await projects.get(principalOf(request, "user"), request.params.id)),
  );
}
