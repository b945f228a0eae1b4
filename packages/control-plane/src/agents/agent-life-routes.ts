import { agentConfigSchema, agentEventSchema, agentSchema } from "@fairlead/protocol/agents";
import { rfc3339 } from "@fairlead/protocol/clock";
import type { FastifySchema } from "fastify";
import { z } from "zod";
import { historyQuery } from "../http/history-query.ts";
import { paginate } from "../http/pagination.ts";
import type { PlatformApp } from "../http/platform-host.ts";
import { principalOf, requirePrincipal } from "../http/require-principal.ts";
import { toAgent } from "./agent.ts";
import type { AgentLifeService } from "./agent-life-service.ts";
import { AGENT_PATH, agentParams } from "./agent-routes.ts";
import type { AgentService } from "./agent-service.ts";

export interface AgentLifeRouteServices {
  readonly agents: AgentService;
  readonly agentLife: AgentLifeService;
}

const tags = ["Agents"];

const startAgent = {
  summary: "Start an agent",
  description:
    "It is to run from now on, through restarts of its node and of this server; one that has failed is started anew. Answers at once: " +
    "its state and events tell how it goes. Refused while a secret of its connectors, its guest or its config is missing.",
  operationId: "startAgent",
  tags,
  errors: [
    "not_found",
    "permission_denied",
    "project_deleting",
    "missing_secrets",
    "node_not_enrolled",
    "daemon_too_old",
    "agent_deleting",
  ],
  params: agentParams,
  body: z.strictObject({}).nullish(),
  response: { 200: agentSchema },
} satisfies FastifySchema;

const stopAgent = {
  summary: "Stop an agent",
  description: "Its token is void at once, and its program gets its time to end. It stays stopped until it is started.",
  operationId: "stopAgent",
  tags,
  errors: ["not_found", "permission_denied", "project_deleting", "agent_deleting"],
  params: agentParams,
  body: z.strictObject({}).nullish(),
  response: { 200: agentSchema },
} satisfies FastifySchema;

const getAgentConfig = {
  summary: "Get an agent's config",
  description: "What it needs beyond its fields, as it was written; its guest's preset fills in what is left out.",
  operationId: "getAgentConfig",
  tags,
  errors: ["not_found"],
  params: agentParams,
  response: { 200: agentConfigSchema },
} satisfies FastifySchema;

const listAgentEvents = {
  summary: "List what happened to an agent",
  description:
    "Each with its reason: the newest first; kept for 90 days. Why did it restart? The newest `workload_exited` or `workload_stopped` says.",
  operationId: "listAgentEvents",
  tags,
  errors: ["not_found"],
  params: agentParams,
  querystring: z.strictObject({
    ...historyQuery("workload_exited,reported_failed"),
  }),
  response: { 200: z.object({ events: z.array(agentEventSchema), nextPageToken: z.string() }) },
} satisfies FastifySchema;

export function registerAgentLifeRoutes(app: PlatformApp, { agents, agentLife }: AgentLifeRouteServices): void {
  const onRequest = requirePrincipal("user");

  app.post(`${AGENT_PATH}::start`, { onRequest, schema: startAgent }, async (request) =>
    toAgent(await agentLife.start(principalOf(request, "user"), request.params.id)),
  );

  app.post(`${AGENT_PATH}::stop`, { onRequest, schema: stopAgent }, async (request) =>
    toAgent(await agentLife.stop(principalOf(request, "user"), request.params.id)),
  );

  app.get(`${AGENT_PATH}/config`, { onRequest, schema: getAgentConfig }, async (request) => {
    const { config } = await agents.get(principalOf(request, "user"), request.params.id);
    return config;
  });

  app.get(`${AGENT_PATH}/events`, { onRequest, schema: listAgentEvents }, async (request) => {
    const caller = principalOf(request, "user");
    const { kind: kinds, since, ...asked } = request.query;
    const { items, nextPageToken } = await paginate(asked, {
      fetch: (page) => agents.events(caller, request.params.id, { ...page, kinds, since }),
      cursorOf: (event) => event.id,
    });
    return { events: items.map(({ agentId: _agent, at, ...event }) => ({ ...event, at: rfc3339(at) })), nextPageToken };
  });
}
