import { modelAliasSchema } from "@fairlead/protocol/providers";
import type { FastifySchema } from "fastify";
import { z } from "zod";
import { reference } from "../http/fields.ts";
import { pageQuery, paginate } from "../http/pagination.ts";
import type { PlatformApp } from "../http/platform-host.ts";
import { principalOf, requirePrincipal } from "../http/require-principal.ts";
import { targetsSchema, toModelAlias } from "./alias.ts";
import type { AliasService } from "./alias-service.ts";
import { providerNameSchema } from "./model-name.ts";

const tags = ["Providers"];
const projectParams = z.object({ id: reference("The project's id.") });
const params = projectParams.extend({ name: reference("The alias.") });

const listAliases = {
  summary: "List a project's aliases",
  operationId: "listAliases",
  tags,
  errors: ["not_found"],
  params: projectParams,
  querystring: z.object(pageQuery),
  response: { 200: z.object({ aliases: z.array(modelAliasSchema), nextPageToken: z.string() }) },
} satisfies FastifySchema;

const getAlias = {
  summary: "Get an alias",
  operationId: "getAlias",
  tags,
  errors: ["not_found"],
  params,
  response: { 200: modelAliasSchema },
} satisfies FastifySchema;

const putAlias = {
  summary: "Make an alias, or give it other targets",
  description:
    "A name of the project's own for an ordered list of models: a call that names it goes to the first one that can answer. The name must be " +
    "free among the project's providers and nodes' identifiers, and none of the platform's.",
  operationId: "putAlias",
  tags,
  errors: ["not_found", "permission_denied", "project_deleting", "already_exists"],
  params: projectParams.extend({ name: providerNameSchema.describe("The alias: a model's name without a `/`.") }),
  body: z.strictObject({ targets: targetsSchema }).meta({ examples: [{ targets: ["nodes/qwen3-8b"] }] }),
  response: { 200: modelAliasSchema },
} satisfies FastifySchema;

const deleteAlias = {
  summary: "Delete an alias",
  operationId: "deleteAlias",
  tags,
  errors: ["not_found", "permission_denied", "project_deleting"],
  params,
  response: { 200: z.object({}) },
} satisfies FastifySchema;

/** `/v1/projects/{id}/aliases`: ordered lists of models (design §8). */
export function registerAliasRoutes(app: PlatformApp, aliases: AliasService): void {
  const onRequest = requirePrincipal("user");

  app.get("/v1/projects/:id/aliases", { onRequest, schema: listAliases }, async (request) => {
    const caller = principalOf(request, "user");
    const { items, nextPageToken } = await paginate(request.query, {
      fetch: (page) => aliases.list(caller, request.params.id, page),
      cursorOf: (alias) => alias.name,
    });
    return { aliases: items.map(toModelAlias), nextPageToken };
  });

  app.get("/v1/projects/:id/aliases/:name", { onRequest, schema: getAlias }, async (request) => {
    const { id: projectId, name } = request.params;
    return toModelAlias(await aliases.get(principalOf(request, "user"), { projectId, name }));
  });

  app.put("/v1/projects/:id/aliases/:name", { onRequest, schema: putAlias }, async (request) => {
    const { id: projectId, name } = request.params;
    const input = { projectId, name, targets: request.body.targets };
    return toModelAlias(await aliases.put(principalOf(request, "user"), input));
  });

  app.delete("/v1/projects/:id/aliases/:name", { onRequest, schema: deleteAlias }, async (request) => {
    const { id: projectId, name } = request.params;
    await aliases.delete(principalOf(request, "user"), { projectId, name });
    return {};
  });
}
