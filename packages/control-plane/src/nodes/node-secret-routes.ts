import { rfc3339 } from "@fairlead/protocol/clock";
import { z } from "zod";
import type { PlatformApp } from "../http/platform-host.ts";
import { principalOf, requirePrincipal } from "../http/require-principal.ts";
import { secretNameSchema, secretValueSchema } from "../secrets/secret.ts";
import type { NodeChangeService } from "./node-change-service.ts";

const params = z.object({ node_id: z.string(), name: secretNameSchema });
const onRequest = requirePrincipal("user");

/** Interface §4.4, put node secret; list (names only) and delete are ours. No value ever comes back. */
export function registerNodeSecretRoutes(app: PlatformApp, nodeChanges: NodeChangeService): void {
  app.put(
    "/v1/nodes/:node_id/secrets/:name",
    {
      onRequest,
      schema: { params, body: z.strictObject({ value: secretValueSchema }), response: { 200: z.strictObject({}) } },
    },
    async (request) => {
      const { node_id: id, name } = request.params;
      await nodeChanges.putSecret(principalOf(request, "user"), id, { name, value: request.body.value });
      return {};
    },
  );

  app.delete(
    "/v1/nodes/:node_id/secrets/:name",
    { onRequest, schema: { params, response: { 200: z.strictObject({}) } } },
    async (request) => {
      const { node_id: id, name } = request.params;
      await nodeChanges.deleteSecret(principalOf(request, "user"), id, name);
      return {};
    },
  );

  app.get(
    "/v1/nodes/:node_id/secrets",
    {
      onRequest,
      schema: {
        params: params.omit({ name: true }),
        response: { 200: z.object({ secrets: z.array(z.object({ name: z.string(), updatedAt: z.string() })) }) },
      },
    },
    async (request) => {
      const names = await nodeChanges.secretNames(principalOf(request, "user"), request.params.node_id);
      return { secrets: names.map(({ name, updatedAt }) => ({ name, updatedAt: rfc3339(updatedAt) })) };
    },
  );
}
