import { providerCheckSchema, providerSchema } from "@fairlead/protocol/providers";
import type { FastifySchema } from "fastify";
import { z } from "zod";
import { idempotencyHeaders, REPLAYED_HEADER } from "../../access/idempotency/idempotency-key.ts";
import type { IdempotencyService } from "../../access/idempotency/idempotency-service.ts";
import type { Once } from "../../access/idempotency/once.ts";
import type { PlatformApp } from "../../http/platform-host.ts";
import { reference } from "../../http/requests/fields.ts";
import { pageQuery, paginate } from "../../http/requests/pagination.ts";
import { principalOf, requirePrincipal } from "../../http/requests/require-principal.ts";
import { providerNameSchema } from "../names/model-name.ts";
import type { ProviderCheckService } from "./check/provider-check-service.ts";
import { credentialSchema, presetSchema, providerSettingsShape, type ToldProvider, toProvider } from "./provider.ts";
import type { ProviderService } from "./provider-service.ts";

export interface ProviderRouteServices {
  readonly providers: ProviderService;
  readonly providerCheck: ProviderCheckService;
  readonly idempotency: IdempotencyService;
}

const tags = ["Providers"];
const projectParams = z.object({ id: reference("The project ID.") });
const params = projectParams.extend({ name: reference("The provider's name.") });

const baseUrl = z
  .string()
  .describe("The value that SDKs use as `base_url`: `https://api.example.com/v1`. Must be https and public.");
const credential = credentialSchema.describe("Encrypted immediately, sent only to the base URL, and never returned.");

const { protocols, credentialHeader, headers, forwardHeaders, timeouts, discovery, models, quirks } =
  providerSettingsShape;

const createProvider = {
  summary: "Create a provider",
  description:
    "An API with your own account, which the project's calls can use as `<name>/<model>`. The name must not be used by another provider, an alias " +
    "or a node of the project, or by a provider of the platform.",
  operationId: "createProvider",
  tags,
  errors: ["not_found", "permission_denied", "project_deleting", "already_exists", "idempotency_mismatch"],
  headers: idempotencyHeaders,
  params: projectParams,
  body: z
    .strictObject({
      name: providerNameSchema.describe("The part of its model names before the first `/`."),
      preset: presetSchema.default(null),
      baseUrl: baseUrl.optional(),
      credential: credential.optional(),
      ...providerSettingsShape,
    })
    .meta({ examples: [{ name: "acme", baseUrl: "https://api.example.com/v1", credential: "sk-example" }] }),
  response: { 200: z.object({ provider: providerSchema }) },
} satisfies FastifySchema;

const listProviders = {
  summary: "List a project's providers",
  description:
    "Sorted by name. Includes the providers of the platform, which all projects can call, with `scope` `platform`.",
  operationId: "listProviders",
  tags,
  errors: ["not_found"],
  params: projectParams,
  querystring: z.object(pageQuery),
  response: { 200: z.object({ providers: z.array(providerSchema), nextPageToken: z.string() }) },
} satisfies FastifySchema;

const getProvider = {
  summary: "Get a provider",
  operationId: "getProvider",
  tags,
  errors: ["not_found"],
  params,
  response: { 200: providerSchema },
} satisfies FastifySchema;

const updateProvider = {
  summary: "Change a provider",
  description:
    "Omitted fields are unchanged; `null` restores the preset's value, or removes the `credential`. Changing `baseUrl` clears the " +
    "credential unless a new one is set as well.",
  operationId: "updateProvider",
  tags,
  errors: ["not_found", "permission_denied", "project_deleting"],
  params,
  body: z
    .strictObject({
      baseUrl: baseUrl.optional(),
      credential: credential.nullable().optional(),
      protocols: protocols.nullable(),
      credentialHeader: credentialHeader.nullable(),
      headers: headers.nullable(),
      forwardHeaders: forwardHeaders.nullable(),
      timeouts: timeouts.nullable(),
      discovery: discovery.nullable(),
      models: models.nullable(),
      quirks: quirks.nullable(),
    })
    .meta({ examples: [{ models: [{ name: "large", contextTokens: 131_072 }] }] }),
  response: { 200: providerSchema },
} satisfies FastifySchema;

const deleteProvider = {
  summary: "Delete a provider",
  description: "Deletes the credential as well. Aliases skip targets of a deleted provider.",
  operationId: "deleteProvider",
  tags,
  errors: ["not_found", "permission_denied", "project_deleting"],
  params,
  response: { 200: z.object({}) },
} satisfies FastifySchema;

const checkProvider = {
  summary: "Check a provider",
  description:
    "Requests its list of models with its credential, as calls would be sent. Nothing is generated and nothing is changed.",
  operationId: "checkProvider",
  tags,
  errors: ["not_found", "permission_denied", "project_deleting"],
  params,
  response: { 200: providerCheckSchema },
} satisfies FastifySchema;

/** `/v1/projects/{id}/providers`. */
export function registerProviderRoutes(app: PlatformApp, services: ProviderRouteServices): void {
  const { providers, providerCheck, idempotency } = services;
  const onRequest = requirePrincipal("user");

  app.post("/v1/projects/:id/providers", { onRequest, schema: createProvider }, async (request, reply) => {
    const caller = principalOf(request, "user");
    const { name, baseUrl: url, credential: secret, ...settings } = request.body;
    const input = { projectId: request.params.id, name, baseUrl: url, credential: secret, settings };
    const call = { key: request.headers["idempotency-key"], userId: caller.userId, projectId: input.projectId };
    const { answer, replayed } = await idempotency.create(
      { ...call, route: "POST /v1/projects/{id}/providers", body: request.body },
      {
        make: (once: Once<ToldProvider>) => providers.create(caller, input, once),
        answer: (provider) => ({ provider: toProvider(provider) }),
        idOf: (provider) => provider.name,
      },
    );
    if (replayed) void reply.header(REPLAYED_HEADER, "true");
    return answer;
  });

  app.get("/v1/projects/:id/providers", { onRequest, schema: listProviders }, async (request) => {
    const caller = principalOf(request, "user");
    const { items, nextPageToken } = await paginate(request.query, {
      fetch: (page) => providers.list(caller, request.params.id, page),
      cursorOf: (provider) => provider.name,
    });
    return { providers: items.map(toProvider), nextPageToken };
  });

  app.get("/v1/projects/:id/providers/:name", { onRequest, schema: getProvider }, async (request) => {
    const { id: projectId, name } = request.params;
    return toProvider(await providers.get(principalOf(request, "user"), { projectId, name }));
  });

  app.patch("/v1/projects/:id/providers/:name", { onRequest, schema: updateProvider }, async (request) => {
    const { id: projectId, name } = request.params;
    const { baseUrl: url, credential: secret, ...settings } = request.body;
    const change = { projectId, name, baseUrl: url, credential: secret, settings };
    return toProvider(await providers.update(principalOf(request, "user"), change));
  });

  app.delete("/v1/projects/:id/providers/:name", { onRequest, schema: deleteProvider }, async (request) => {
    const { id: projectId, name } = request.params;
    await providers.delete(principalOf(request, "user"), { projectId, name });
    return {};
  });

  app.post("/v1/projects/:id/providers/:name(^[^:]+)::check", { onRequest, schema: checkProvider }, async (request) => {
    const { id: projectId, name } = request.params;
    return providerCheck.check(principalOf(request, "user"), { projectId, name });
  });
}
