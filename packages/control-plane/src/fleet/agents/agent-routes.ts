import { agentSchema, createAgentSchema, updateAgentSchema } from "@fairlead/protocol/agents";
import type { FastifySchema } from "fastify";
import { z } from "zod";
import { idempotencyHeaders, REPLAYED_HEADER } from "../../access/idempotency/idempotency-key.ts";
import type { IdempotencyService } from "../../access/idempotency/idempotency-service.ts";
import type { Once } from "../../access/idempotency/once.ts";
import { keyLimitsChangeSchema } from "../../access/keys/key-limits.ts";
import type { PlatformApp } from "../../http/platform-host.ts";
import { reference } from "../../http/requests/fields.ts";
import { pageQuery, paginate } from "../../http/requests/pagination.ts";
import { principalOf, requirePrincipal } from "../../http/requests/require-principal.ts";
import type { AgentService } from "./agent-service.ts";
import type { AgentUpdateService } from "./agent-update-service.ts";
import { type AgentRecord, toAgent } from "./definition/agent.ts";
import type { AgentActionsService } from "./life/agent-actions-service.ts";

export interface AgentRouteServices {
  readonly agents: AgentService;
  readonly agentChanging: AgentUpdateService;
  readonly agentLife: AgentActionsService;
  readonly idempotency: IdempotencyService;
}

const tags = ["Agents"];
/** Bounded so that the router does not read a custom verb as part of the id. */
export const AGENT_PATH = "/v1/agents/:id(^[^:]+)";
export const agentParams = z.object({ id: reference("The agent ID, `agt_…`.") });

const createAgent = {
  summary: "Create an agent",
  description:
    "A program that runs on one of the project's nodes. It does not run until you start it: set the secrets of its connectors first.",
  operationId: "createAgent",
  tags,
  errors: ["not_found", "permission_denied", "project_deleting", "idempotency_mismatch"],
  headers: idempotencyHeaders,
  body: createAgentSchema
    .extend({
      projectId: reference("The project ID."),
      limits: keyLimitsChangeSchema.default({}).describe("Limits for calls and spending, as for a project key."),
    })
    .meta({
      examples: [
        {
          projectId: "prj_01kc3b6q2v8r5x0m7n4t9w1yza",
          name: "Night shift",
          guest: "fairlead-demo-agent",
          runtimeProvider: "node:nod_01kc3b6q2v8r5x0m7n4t9w1yzd",
          connectorSlugs: ["http"],
        },
      ],
    }),
  response: { 200: z.object({ agent: agentSchema }) },
} satisfies FastifySchema;

const listAgents = {
  summary: "List a project's agents",
  description: "Oldest first.",
  operationId: "listAgents",
  tags,
  errors: ["not_found"],
  querystring: z.strictObject({ projectId: reference("The project ID."), ...pageQuery }),
  response: { 200: z.object({ agents: z.array(agentSchema), nextPageToken: z.string() }) },
} satisfies FastifySchema;

const getAgent = {
  summary: "Get an agent",
  operationId: "getAgent",
  tags,
  errors: ["not_found"],
  params: agentParams,
  response: { 200: agentSchema },
} satisfies FastifySchema;

const updateAgent = {
  summary: "Change an agent, or move it to another node",
  description:
    "Omitted fields are unchanged; lists and the config are replaced as a whole. A running agent is updated, and rolled back if the new " +
    "version does not become ready. With a different `runtimeProvider`, it starts there once its previous node reports it gone, so it never runs " +
    "twice. Moving it away from a node that does not respond requires `force`.",
  operationId: "updateAgent",
  tags,
  errors: [
    "not_found",
    "permission_denied",
    "project_deleting",
    "node_unreachable",
    "node_not_enrolled",
    "agent_deleting",
  ],
  params: agentParams,
  body: updateAgentSchema.meta({ examples: [{ runtimeProvider: "node:nod_01kc3b6q2v8r5x0m7n4t9w1yze" }] }),
  response: { 200: agentSchema },
} satisfies FastifySchema;

const deleteAgent = {
  summary: "Delete an agent",
  description:
    "Returns immediately, and the agent's token stops working. A running agent is stopped and stays `deleting` until its node reports it gone.",
  operationId: "deleteAgent",
  tags,
  errors: ["not_found", "permission_denied", "project_deleting"],
  params: agentParams,
  querystring: z.strictObject({
    force: z
      .stringbool()
      .default(false)
      .describe(
        "Do not wait for a node that does not respond. If that node still works, the agent keeps running there until it reconnects.",
      ),
  }),
  response: { 200: z.strictObject({}) },
} satisfies FastifySchema;

export function registerAgentRoutes(app: PlatformApp, services: AgentRouteServices): void {
  registerCollectionRoutes(app, services);
  registerItemRoutes(app, services);
}

function registerCollectionRoutes(app: PlatformApp, { agents, idempotency }: AgentRouteServices): void {
  const onRequest = requirePrincipal("user");

  app.post("/v1/agents", { onRequest, schema: createAgent }, async (request, reply) => {
    const caller = principalOf(request, "user");
    const { body } = request;
    const call = { key: request.headers["idempotency-key"], userId: caller.userId, projectId: body.projectId };
    const { answer, replayed } = await idempotency.create(
      { ...call, route: "POST /v1/agents", body },
      {
        make: (once: Once<AgentRecord>) => agents.create(caller, body, once),
        answer: (agent) => ({ agent: toAgent(agent) }),
        idOf: (agent) => agent.id,
      },
    );
    if (replayed) void reply.header(REPLAYED_HEADER, "true");
    return answer;
  });

  app.get("/v1/agents", { onRequest, schema: listAgents }, async (request) => {
    const caller = principalOf(request, "user");
    const { items, nextPageToken } = await paginate(request.query, {
      fetch: (page) => agents.list(caller, request.query.projectId, page),
      cursorOf: (agent) => agent.id,
    });
    return { agents: items.map(toAgent), nextPageToken };
  });
}

function registerItemRoutes(app: PlatformApp, { agents, agentChanging, agentLife }: AgentRouteServices): void {
  const onRequest = requirePrincipal("user");

  app.get(AGENT_PATH, { onRequest, schema: getAgent }, async (request) =>
    toAgent(await agents.get(principalOf(request, "user"), request.params.id)),
  );

  app.patch(AGENT_PATH, { onRequest, schema: updateAgent }, async (request) =>
    toAgent(await agentChanging.update(principalOf(request, "user"), request.params.id, request.body)),
  );

  app.delete(AGENT_PATH, { onRequest, schema: deleteAgent }, async (request) => {
    await agentLife.delete(principalOf(request, "user"), request.params.id, request.query.force);
    return {};
  });
}
