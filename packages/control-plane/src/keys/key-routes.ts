import { DomainError } from "@fairlead/protocol/errors";
import { projectKeySchema } from "@fairlead/protocol/resources";
import { z } from "zod";
import type { PlatformApp } from "../http/platform-host.ts";
import { principalOf, requirePrincipal } from "../http/require-principal.ts";
import { keyNameSchema, toProjectKey } from "./key.ts";
import type { KeyService } from "./key-service.ts";

/** Interface §4.2, create key. The body repeats the path's project; two that differ are a mistake to tell of. */
export function registerKeyRoutes(app: PlatformApp, keys: KeyService): void {
  app.post(
    "/v1/projects/:project_id/keys",
    {
      onRequest: requirePrincipal("user"),
      schema: {
        params: z.object({ project_id: z.string() }),
        body: z.strictObject({ projectId: z.string().optional(), name: keyNameSchema }),
        response: { 200: z.object({ key: projectKeySchema }) },
      },
    },
    async (request) => {
      const { project_id: projectId } = request.params;
      const { projectId: repeated = projectId, name } = request.body;
      if (repeated !== projectId) {
        throw new DomainError("invalid_request", "`projectId`: must be the project of the path.", {
          param: "projectId",
        });
      }
      const { key, value } = await keys.create(principalOf(request, "user"), { projectId, name });
      return { key: toProjectKey(key, value) };
    },
  );
}
