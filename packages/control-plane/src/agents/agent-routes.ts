import { agentSchema, createAgentSchema, updateAgentSchema } from "@fairlead/protocol/agents";
import type { FastifySchema } from "fastify";
import { z } from "zod";
import { reference } from "../http/fields.ts";
import { pageQuery, paginate } from "../http/pagination.ts";
import type { PlatformApp } from "../http/platform-host.ts";
import { principalOf, requirePrincipal } from "../http/require-principal.ts";
import { idempotencyHeaders, REPLAYED_HEADER } from "../idempotency/idempotency-key.ts";
import type { IdempotencyService } from "../idempotency/idempotency-service.ts";
import type { Once } from "../idempotency/once.ts";
import { keyLimitsChangeSchema } from "../keys/key-limits.ts";
import { type AgentRecord, toAgent } from "./agent.ts";
import type { AgentChangeService } from "./agent-change-service.ts";
import type { AgentLifeService } from "./agent-life-service.ts";
import type { AgentService } from "./agent-service.ts";

export interface AgentRouteServices {
  readonly agents: AgentService;
  readonly agentChanging: AgentChangeService;
  readonly agentLife: AgentLifeService;
  readonly idempotency: IdempotencyService;
}

const tags = ["Agents"];
/** Bounded, so that the router does not take a verb for a part of the id. */
export const AGENT_PATH = "/v1/agents/:id(^[^:]+)";
export const agentParams = z.object({ id: reference("The agent's id, `agt_…`.") });

const createAgent = {
  summary: "Create an agent",
  description:
    "A program that runs for the project on one of its nodes. It does not run before it is started: set the secrets of its connectors first.",
  operationId: "createAgent",
  tags,
  errors: ["not_found", "permission_denied", "project_deleting", "idempotency_mismatch"],
  headers: idempotencyHeaders,
  body: createAgentSchema
    .extend({
      projectId: reference("The project's id."),
      limits: keyLimitsChangeSchema.default({}).describe("How much it may call and spend, as of a project key."),
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
  description: "The oldest first.",
  operationId: "listAgents",
  tags,
  errors: ["not_found"],
  querystring: z.strictObject({ projectId: reference("The project's id."), ...pageQuery }),
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
    "What is absent stays as it is; lists and the config are replaced whole. An agent that runs is updated, and rolled back where the new " +
    "one does not become ready. With another `runtimeProvider` it starts there once its former node has reported it gone, and so never runs " +
    "twice; away from a node that does not answer, that takes `force`.",
  operationId: "updateAgent",
  tags,
  errors: [
    "not_found",
    "permission_denied",
    "project_deleting",
    "node_unreachable",
    "node_not_enrolled",
    "daemon_too_old",
    "agent_deleting",
  ],
  params: agentParams,
  body: updateAgentSchema.meta({ examples: [{ runtimeProvider: "node:nod_01kc3b6q2v8r5x0m7n4t9w1yze" }] }),
  response: { 200: agentSchema },
} satisfies FastifySchema;

const deleteAgent = {
  summary: "Delete an agent",
  description:
    "Answers at once, and its token is void. One that runs is stopped, and is `deleting` until its node has reported it gone.",
  operationId: "deleteAgent",
  tags,
  errors: ["not_found", "permission_denied", "project_deleting"],
  params: agentParams,
  querystring: z.strictObject({
    force: z
      .stringbool()
      .default(false)
      .describe(
        "Do not wait for a node that does not answer: where it still works, the agent runs there until it is back.",
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
