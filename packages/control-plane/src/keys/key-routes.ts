import { DomainError } from "@fairlead/protocol/errors";
import { projectKeySchema } from "@fairlead/protocol/resources";
import type { FastifySchema } from "fastify";
import { z } from "zod";
import { reference } from "../http/fields.ts";
import type { PlatformApp } from "../http/platform-host.ts";
import { principalOf, requirePrincipal } from "../http/require-principal.ts";
import { idempotencyHeaders, REPLAYED_HEADER } from "../idempotency/idempotency-key.ts";
import type { IdempotencyService } from "../idempotency/idempotency-service.ts";
import type { Once } from "../idempotency/once.ts";
import { keyNameSchema, toProjectKey } from "./key.ts";
import type { CreatedKey, KeyService } from "./key-service.ts";

export interface KeyRouteServices {
  readonly keys: KeyService;
  readonly idempotency: IdempotencyService;
}

const createProjectKey = {
  summary: "Create a project key",
  description:
    "The virtual key for the inference host. `keyValue` is shown in this answer and never again; a repeat with the same " +
    "`Idempotency-Key` is refused with 409.",
  operationId: "createProjectKey",
  tags: ["Keys"],
  errors: ["not_found", "permission_denied", "idempotency_mismatch", "already_exists"],
  headers: idempotencyHeaders,
  params: z.object({ project_id: reference("The project's id.") }),
  body: z
    .strictObject({ projectId: reference("The project of the path.").optional(), name: keyNameSchema })
    .meta({ examples: [{ name: "CI" }] }),
  response: { 200: z.object({ key: projectKeySchema }) },
} satisfies FastifySchema;

/** Interface §4.2, create key. The body repeats the path's project; two that differ are a mistake to tell of. */
export function registerKeyRoutes(app: PlatformApp, { keys, idempotency }: KeyRouteServices): void {
  app.post(
    "/v1/projects/:project_id/keys",
    { onRequest: requirePrincipal("user"), schema: createProjectKey },
    async (request, reply) => {
      const { project_id: projectId } = request.params;
      const { projectId: repeated = projectId, name } = request.body;
      if (repeated !== projectId) {
        throw new DomainError("invalid_request", "`projectId`: must be the project of the path.", {
          param: "projectId",
        });
      }
      const caller = principalOf(request, "user");
      const call = { key: request.headers["idempotency-key"], userId: caller.userId, projectId };
      const { answer, replayed } = await idempotency.create(
        { ...call, route: "POST /v1/projects/{project_id}/keys", body: request.body },
        {
          make: (once: Once<CreatedKey>) => keys.create(caller, { projectId, name }, once),
          answer: ({ key, value }) => ({ key: toProjectKey(key, value) }),
          idOf: ({ key }) => key.id,
          secret: true,
        },
      );
      if (replayed) void reply.header(REPLAYED_HEADER, "true");
      return answer;
    },
  );
}
