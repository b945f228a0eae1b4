import { rfc3339 } from "@fairlead/protocol/clock";
import type { FastifySchema } from "fastify";
import { z } from "zod";
import { reference } from "../http/fields.ts";
import type { PlatformApp } from "../http/platform-host.ts";
import { principalOf, requirePrincipal } from "../http/require-principal.ts";
import { secretNameSchema, secretValueSchema } from "../secrets/secret.ts";
import type { NodeChangeService } from "./node-change-service.ts";

const params = z.object({
  node_id: reference("The node's id."),
  name: secretNameSchema.describe("The secret's name: a file's name on the node."),
});
const onRequest = requirePrincipal("user");
const tags = ["Node secrets"];

const putNodeSecret = {
  summary: "Set a secret of a node",
  description: "Creates or replaces it. No answer ever shows a value.",
  operationId: "putNodeSecret",
  tags,
  errors: ["not_found", "permission_denied", "node_not_enrolled"],
  params,
  body: z.strictObject({ value: secretValueSchema }).meta({ examples: [{ value: "<SECRET_VALUE>" }] }),
  response: { 200: z.strictObject({}) },
} satisfies FastifySchema;

const deleteNodeSecret = {
  summary: "Delete a secret of a node",
  operationId: "deleteNodeSecret",
  tags,
  errors: ["not_found", "permission_denied"],
  params,
  response: { 200: z.strictObject({}) },
} satisfies FastifySchema;

const listNodeSecrets = {
  summary: "List the names of a node's secrets",
  operationId: "listNodeSecrets",
  tags,
  errors: ["not_found", "permission_denied"],
  params: params.omit({ name: true }),
  response: { 200: z.object({ secrets: z.array(z.object({ name: z.string(), updatedAt: z.string() })) }) },
} satisfies FastifySchema;

/** Interface §4.4, put node secret; list (names only) and delete are ours. No value ever comes back. */
export function registerNodeSecretRoutes(app: PlatformApp, nodeChanges: NodeChangeService): void {
  app.put("/v1/nodes/:node_id/secrets/:name", { onRequest, schema: putNodeSecret }, async (request) => {
    const { node_id: id, name } = request.params;
    await nodeChanges.putSecret(principalOf(request, "user"), id, { name, value: request.body.value });
    return {};
  });

  app.delete("/v1/nodes/:node_id/secrets/:name", { onRequest, schema: deleteNodeSecret }, async (request) => {
    const { node_id: id, name } = request.params;
    await nodeChanges.deleteSecret(principalOf(request, "user"), id, name);
    return {};
  });

  app.get("/v1/nodes/:node_id/secrets", { onRequest, schema: listNodeSecrets }, async (request) => {
    const names = await nodeChanges.secretNames(principalOf(request, "user"), request.params.node_id);
    return { secrets: names.map(({ name, updatedAt }) => ({ name, updatedAt: rfc3339(updatedAt) })) };
  });
}
