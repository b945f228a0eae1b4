import { agentSecretSchema } from "@fairlead/protocol/agents";
import { secretNameSchema } from "@fairlead/protocol/secrets";
import type { FastifySchema } from "fastify";
import { z } from "zod";
import type { PlatformApp } from "../http/platform-host.ts";
import { principalOf, requirePrincipal } from "../http/require-principal.ts";
import type { OwnedSecretService } from "../secrets/owned-secret-service.ts";
import { secretBodySchema, toSecret } from "../secrets/secret.ts";
import { AGENT_PATH, agentParams } from "./agent-routes.ts";

const params = agentParams.extend({
  name: secretNameSchema.describe("The secret's name: a file's name in the agent, or a variable's."),
});
const tags = ["Agent secrets"];

const putAgentSecret = {
  summary: "Set a secret of an agent",
  description:
    "Creates or replaces it, as its next version. An agent that takes it as a file sees the change at once; one that takes it as an environment variable is replaced. No answer ever shows a value.",
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
    "An agent that needs it runs on until it ends, and its next start waits for the secret. A repeat answers the same.",
  operationId: "deleteAgentSecret",
  tags,
  errors: ["not_found", "permission_denied", "project_deleting", "agent_deleting"],
  params,
  response: { 200: z.strictObject({}) },
} satisfies FastifySchema;

const listAgentSecrets = {
  summary: "List an agent's secrets",
  description: "Names and versions, by name; never a value. One that is `stale` must be set again.",
  operationId: "listAgentSecrets",
  tags,
  errors: ["not_found", "permission_denied", "project_deleting"],
  params: agentParams,
  response: { 200: z.object({ secrets: z.array(agentSecretSchema) }) },
} satisfies FastifySchema;

/** Interface §4.3, delete agent secret; put and list are ours. */
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
