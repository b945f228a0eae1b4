import { modelAliasSchema } from "@fairlead/protocol/providers";
import type { FastifySchema } from "fastify";
import { z } from "zod";
import type { PlatformApp } from "../../../http/platform-host.ts";
import { reference } from "../../../http/requests/fields.ts";
import { pageQuery, paginate } from "../../../http/requests/pagination.ts";
import { principalOf, requirePrincipal } from "../../../http/requests/require-principal.ts";
import { providerNameSchema } from "../../names/model-name.ts";
import { targetsSchema, toModelAlias } from "./alias.ts";
import type { AliasService } from "./alias-service.ts";

const tags = ["Providers"];
const projectParams = z.object({ id: reference("The project ID.") });
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
  summary: "Create or replace an alias",
  description:
    "A name in the project for an ordered list of models. A call with this name goes to the first model that can respond. The name must not be " +
    "used by a provider or node of the project, or by a provider of the platform.",
  operationId: "putAlias",
  tags,
  errors: ["not_found", "permission_denied", "project_deleting", "already_exists"],
  params: projectParams.extend({ name: providerNameSchema.describe("The alias: a model name without a `/`.") }),
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

/** `/v1/projects/{id}/aliases`: ordered lists of models. */
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
