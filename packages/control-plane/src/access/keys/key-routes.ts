import { DomainError } from "@fairlead/protocol/errors";
import { type ProjectKey, projectKeySchema } from "@fairlead/protocol/resources";
import type { Clock } from "@fairlead/protocol/values/clock";
import { nameSchema } from "@fairlead/protocol/values/text";
import type { FastifySchema } from "fastify";
import { z } from "zod";
import type { PlatformApp } from "../../http/platform-host.ts";
import { reference } from "../../http/requests/fields.ts";
import { pageQuery, paginate } from "../../http/requests/pagination.ts";
import { principalOf, requirePrincipal } from "../../http/requests/require-principal.ts";
import { idempotencyHeaders, REPLAYED_HEADER } from "../idempotency/idempotency-key.ts";
import type { IdempotencyService } from "../idempotency/idempotency-service.ts";
import type { Once } from "../idempotency/once.ts";
import { DEFAULT_OVERLAP_SECONDS, type KeyRecord, overlapSchema, toProjectKey } from "./key.ts";
import { keyLimitsChangeSchema } from "./key-limits.ts";
import type { KeyName, KeyService, KeyWithValue } from "./key-service.ts";

export interface KeyRouteServices {
  readonly keys: KeyService;
  readonly idempotency: IdempotencyService;
  /** Costs of the keys' calls. */
  readonly billing: { spent(keyIds: readonly string[]): Promise<ReadonlyMap<string, ProjectKey["spent"]>> };
  readonly clock: Clock;
}

const tags = ["Keys"];
const projectParams = z.object({ project_id: reference("The project ID.") });
const keyParams = projectParams.extend({ id: reference("The key ID, `key_…`.") });
/** Bounded so that the router does not read the verb as part of the id. */
const ROTATE_PATH = "/v1/projects/:project_id/keys/:id(^[^:]+)::rotate";
const withValue = { 200: z.object({ key: projectKeySchema }) };

const settings = {
  enabled: z.boolean().optional().describe("False rejects all requests."),
  expiresAt: z.iso
    .datetime({ offset: true, error: "must be an RFC 3339 time" })
    .transform((text) => Date.parse(text))
    .nullable()
    .optional()
    .describe("Requests are rejected after this time (RFC 3339), which must be in the future. Null: never expires."),
  limits: keyLimitsChangeSchema.optional(),
};

const createProjectKey = {
  summary: "Create a project key",
  description:
    "A key for the inference host. `keyValue` is returned only once; a retry with the same " +
    "`Idempotency-Key` fails with 409.",
  operationId: "createProjectKey",
  tags,
  errors: ["not_found", "permission_denied", "project_deleting", "idempotency_mismatch", "already_exists"],
  headers: idempotencyHeaders,
  params: projectParams,
  body: z
    .strictObject({ projectId: reference("The project in the path.").optional(), name: nameSchema, ...settings })
    .meta({ examples: [{ name: "CI" }] }),
  response: withValue,
} satisfies FastifySchema;

const listProjectKeys = {
  summary: "List a project's keys",
  description: "Oldest first, without their secrets.",
  operationId: "listProjectKeys",
  tags,
  errors: ["not_found"],
  params: projectParams,
  querystring: z.object({ userId: reference("Only keys that this user created.").optional(), ...pageQuery }),
  response: { 200: z.object({ keys: z.array(projectKeySchema), nextPageToken: z.string() }) },
} satisfies FastifySchema;

const getProjectKey = {
  summary: "Get a project key",
  operationId: "getProjectKey",
  tags,
  errors: ["not_found"],
  params: keyParams,
  response: { 200: projectKeySchema },
} satisfies FastifySchema;

const updateProjectKey = {
  summary: "Change a project key",
  description:
    "Omitted fields are unchanged; `null` removes a limit. Takes effect within one second. Members can change the keys that they created, " +
    "admins and owners all keys.",
  operationId: "updateProjectKey",
  tags,
  errors: ["not_found", "permission_denied", "project_deleting"],
  params: keyParams,
  body: z
    .strictObject({ name: nameSchema.optional(), ...settings })
    .meta({ examples: [{ limits: { modelAllowList: ["local/*"], budget: { monthly: 50_000_000_000 } } }] }),
  response: { 200: projectKeySchema },
} satisfies FastifySchema;

const rotateProjectKey = {
  summary: "Rotate a project key",
  description:
    "The current secret keeps working for `overlapSeconds`. Older ones stop immediately. `keyValue` is returned only " +
    "once. If the key is disabled, the current secret stops immediately as well.",
  operationId: "rotateProjectKey",
  tags,
  errors: ["not_found", "permission_denied", "project_deleting", "idempotency_mismatch", "already_exists"],
  headers: idempotencyHeaders,
  params: keyParams,
  body: z
    .strictObject({
      overlapSeconds: overlapSchema
        .default(DEFAULT_OVERLAP_SECONDS)
        .describe("Seconds that the current secret keeps working: from 0 (none) to 30 days."),
    })
    .default({ overlapSeconds: DEFAULT_OVERLAP_SECONDS })
    .meta({ examples: [{ overlapSeconds: 3600 }] }),
  response: withValue,
} satisfies FastifySchema;

const deleteProjectKey = {
  summary: "Delete a project key",
  description: "The key stops working within one second. Its usage is kept in the project's usage.",
  operationId: "deleteProjectKey",
  tags,
  errors: ["not_found", "permission_denied", "project_deleting"],
  params: keyParams,
  response: { 200: z.object({}) },
} satisfies FastifySchema;

/** docs/interface.md §4.2, create key; the other routes are additions. */
export function registerKeyRoutes(app: PlatformApp, services: KeyRouteServices): void {
  const { keys, billing, clock } = services;
  const onRequest = requirePrincipal("user");
  const tell = async (keys: readonly KeyRecord[]): Promise<ProjectKey[]> => {
    const spent = await billing.spent(keys.map(({ id }) => id));
    return keys.map((key) => toProjectKey(key, { now: clock.now(), spent: spent.get(key.id) }));
  };
  const tellOne = async (key: KeyRecord): Promise<ProjectKey> => {
    const spent = await billing.spent([key.id]);
    return toProjectKey(key, { now: clock.now(), spent: spent.get(key.id) });
  };

  registerKeyMaking(app, services);

  app.get("/v1/projects/:project_id/keys", { onRequest, schema: listProjectKeys }, async (request) => {
    const caller = principalOf(request, "user");
    const { userId = null, ...query } = request.query;
    const { items, nextPageToken } = await paginate(query, {
      fetch: (page) => keys.list(caller, request.params.project_id, { userId, ...page }),
      cursorOf: (key) => key.id,
    });
    return { keys: await tell(items), nextPageToken };
  });

  app.get("/v1/projects/:project_id/keys/:id", { onRequest, schema: getProjectKey }, async (request) =>
    tellOne(await keys.get(principalOf(request, "user"), keyName(request.params))),
  );

  app.patch("/v1/projects/:project_id/keys/:id", { onRequest, schema: updateProjectKey }, async (request) =>
    tellOne(await keys.update(principalOf(request, "user"), keyName(request.params), request.body)),
  );

  app.delete("/v1/projects/:project_id/keys/:id", { onRequest, schema: deleteProjectKey }, async (request) => {
    await keys.delete(principalOf(request, "user"), keyName(request.params));
    return {};
  });
}

/** The routes that return a secret. */
function registerKeyMaking(app: PlatformApp, { keys, idempotency, billing, clock }: KeyRouteServices): void {
  const onRequest = requirePrincipal("user");
  const creation = (spent?: ProjectKey["spent"]) => ({
    answer: ({ key, value }: KeyWithValue) => ({
      key: toProjectKey(key, { now: clock.now(), spent, keyValue: value }),
    }),
    idOf: ({ key }: KeyWithValue) => key.id,
    secret: true,
  });

  app.post("/v1/projects/:project_id/keys", { onRequest, schema: createProjectKey }, async (request, reply) => {
    const { project_id: projectId } = request.params;
    const { projectId: repeated = projectId, ...input } = request.body;
    if (repeated !== projectId) {
      throw new DomainError("invalid_request", "`projectId`: must be the project in the path.", { param: "projectId" });
    }
    const caller = principalOf(request, "user");
    const call = { key: request.headers["idempotency-key"], userId: caller.userId, projectId };
    const { answer, replayed } = await idempotency.create(
      { ...call, route: "POST /v1/projects/{project_id}/keys", body: request.body },
      { ...creation(), make: (once: Once<KeyWithValue>) => keys.create(caller, { ...input, projectId }, once) },
    );
    if (replayed) void reply.header(REPLAYED_HEADER, "true");
    return answer;
  });

  app.post(ROTATE_PATH, { onRequest, schema: rotateProjectKey }, async (request) => {
    const caller = principalOf(request, "user");
    const name = keyName(request.params);
    const call = { key: request.headers["idempotency-key"], userId: caller.userId, projectId: name.projectId };
    const spent = await billing.spent([name.id]);
    const { answer } = await idempotency.create(
      // The key's id is part of what a retry must repeat.
      { ...call, route: "POST /v1/projects/{project_id}/keys/{id}:rotate", body: { ...request.body, id: name.id } },
      {
        ...creation(spent.get(name.id)),
        make: (once: Once<KeyWithValue>) => keys.rotate(caller, { ...name, ...request.body }, once),
      },
    );
    return answer;
  });
}

function keyName(params: z.infer<typeof keyParams>): KeyName {
  return { projectId: params.project_id, id: params.id };
}
