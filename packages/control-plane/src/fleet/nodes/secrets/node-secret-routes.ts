import { nodeSecretSchema, secretNameSchema } from "@fairlead/protocol/secrets";
import type { FastifySchema } from "fastify";
import { z } from "zod";
import type { PlatformApp } from "../../../http/platform-host.ts";
import { reference } from "../../../http/requests/fields.ts";
import { principalOf, requirePrincipal } from "../../../http/requests/require-principal.ts";
import type { OwnedSecretService } from "../../secrets/owned-secret-service.ts";
import { secretBodySchema, toSecret } from "../../secrets/secret.ts";

const params = z.object({
  node_id: reference("The node ID."),
  name: secretNameSchema.describe("The name of the secret, which is its file name on the node."),
});
const onRequest = requirePrincipal("user");
const tags = ["Node secrets"];

const putNodeSecret = {
  summary: "Set a secret of a node",
  description:
    "Creates the secret or replaces it with a new version. A workload that reads it from a file sees the change immediately; a workload that gets it in an environment variable is restarted. Values are never returned.",
  operationId: "putNodeSecret",
  tags,
  errors: ["not_found", "permission_denied", "node_not_enrolled"],
  params,
  body: secretBodySchema,
  response: { 200: nodeSecretSchema },
} satisfies FastifySchema;

const deleteNodeSecret = {
  summary: "Delete a secret of a node",
  description:
    "A workload that needs the secret keeps running until it exits, and then waits for the secret. Repeating the call returns the same response.",
  operationId: "deleteNodeSecret",
  tags,
  errors: ["not_found", "permission_denied"],
  params,
  response: { 200: z.strictObject({}) },
} satisfies FastifySchema;

const listNodeSecrets = {
  summary: "List a node's secrets",
  description: "Names and versions, sorted by name, never values. A `stale` secret must be set again.",
  operationId: "listNodeSecrets",
  tags,
  errors: ["not_found", "permission_denied"],
  params: params.omit({ name: true }),
  response: { 200: z.object({ secrets: z.array(nodeSecretSchema) }) },
} satisfies FastifySchema;

/** docs/interface.md §4.4, put node secret; list and delete are additions. */
export function registerNodeSecretRoutes(app: PlatformApp, secrets: OwnedSecretService): void {
  app.put("/v1/nodes/:node_id/secrets/:name", { onRequest, schema: putNodeSecret }, async (request) => {
    const { node_id: id, name } = request.params;
    const { value } = request.body;
    return toSecret(await secrets.put(principalOf(request, "user"), id, { name, value }));
  });

  app.delete("/v1/nodes/:node_id/secrets/:name", { onRequest, schema: deleteNodeSecret }, async (request) => {
    const { node_id: id, name } = request.params;
    await secrets.delete(principalOf(request, "user"), id, name);
    return {};
  });

  app.get("/v1/nodes/:node_id/secrets", { onRequest, schema: listNodeSecrets }, async (request) => {
    const listed = await secrets.list(principalOf(request, "user"), request.params.node_id);
    return { secrets: listed.map(toSecret) };
  });
}
