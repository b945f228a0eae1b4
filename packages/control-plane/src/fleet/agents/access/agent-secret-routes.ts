import { agentSecretSchema } from "@fairlead/protocol/agents";
import { secretNameSchema } from "@fairlead/protocol/secrets";
import type { FastifySchema } from "fastify";
import { z } from "zod";
import type { PlatformApp } from "../../../http/platform-host.ts";
import { principalOf, requirePrincipal } from "../../../http/requests/require-principal.ts";
import type { OwnedSecretService } from "../../secrets/owned-secret-service.ts";
import { secretBodySchema, toSecret } from "../../secrets/secret.ts";
import { AGENT_PATH, agentParams } from "../agent-routes.ts";

const params = agentParams.extend({
  name: secretNameSchema.describe("The name of the secret: the file name in the agent, or the variable name."),
});
const tags = ["Agent secrets"];

const putAgentSecret = {
  summary: "Set a secret of an agent",
  description:
    "Creates the secret or replaces it with a new version. An agent that reads it from a file sees the change immediately; an agent that gets it in an environment variable is restarted. Values are never returned.",
  operationId: "putAgentSecret",
  tags,
  errors: ["not_found", "permission_denied", "project_deleting", "node_not_enrolled", "agent_deleting"],
  params,
  body: secretBodySchema,
  response: { 200: agentSecretSchema },
} satisfies FastifySchema;

const deleteAgentSecret = {
  summary: "Delete a secret of an agent",
  description:
    "An agent that needs the secret keeps running until it exits; its next start waits for the secret. Repeating the call returns the same response.",
  operationId: "deleteAgentSecret",
  tags,
  errors: ["not_found", "permission_denied", "project_deleting", "agent_deleting"],
  params,
  response: { 200: z.strictObject({}) },
} satisfies FastifySchema;

const listAgentSecrets = {
  summary: "List an agent's secrets",
  description: "Names and versions, sorted by name, never values. A `stale` secret must be set again.",
  operationId: "listAgentSecrets",
  tags,
  errors: ["not_found", "permission_denied", "project_deleting"],
  params: agentParams,
  response: { 200: z.object({ secrets: z.array(agentSecretSchema) }) },
} satisfies FastifySchema;

/** `docs/interface.md §4.3`, delete agent secret; put and list are ours. */
export function registerAgentSecretRoutes(app: PlatformApp, secrets: OwnedSecretService): void {
  const onRequest = requirePrincipal("user");

  app.put(`${AGENT_PATH}/secrets/:name`, { onRequest, schema: putAgentSecret }, async (request) => {
    const { id, name } = request.params;
    const { value } = request.body;
    return toSecret(await secrets.put(principalOf(request, "user"), id, { name, value }));
  });

  app.delete(`${AGENT_PATH}/secrets/:name`, { onRequest, schema: deleteAgentSecret }, async (request) => {
    const { id, name } = request.params;
    await secrets.delete(principalOf(request, "user"), id, name);
    return {};
  });

  app.get(`${AGENT_PATH}/secrets`, { onRequest, schema: listAgentSecrets }, async (request) => {
    const listed = await secrets.list(principalOf(request, "user"), request.params.id);
    return { secrets: listed.map(toSecret) };
  });
}
