import { agentConfigSchema, agentEventSchema, agentSchema } from "@fairlead/protocol/agents";
import { rfc3339 } from "@fairlead/protocol/values/clock";
import type { FastifySchema } from "fastify";
import { z } from "zod";
import type { PlatformApp } from "../../../http/platform-host.ts";
import { historyQuery } from "../../../http/requests/history-query.ts";
import { paginate } from "../../../http/requests/pagination.ts";
import { principalOf, requirePrincipal } from "../../../http/requests/require-principal.ts";
import { LOG_FORMS, logAnswer, logQueryFields, logText } from "../../nodes/actions/log-route-schemas.ts";
import type { AgentLogService } from "../access/agent-log-service.ts";
import { AGENT_PATH, agentParams } from "../agent-routes.ts";
import type { AgentService } from "../agent-service.ts";
import { toAgent } from "../definition/agent.ts";
import type { AgentActionsService } from "./agent-actions-service.ts";

const getAgentLogs = {
  summary: "Read an agent's logs",
  description: `${LOG_FORMS} Only for owners and admins, and recorded in the audit log, because logs may contain the data that agents process.`,
  operationId: "getAgentLogs",
  tags: ["Agents"],
  errors: ["not_found", "permission_denied", "no_running_engine", "unavailable", "overloaded"],
  params: agentParams,
  querystring: z.strictObject(logQueryFields),
  response: { 200: logAnswer },
} satisfies FastifySchema;

export function registerAgentLogRoutes(app: PlatformApp, logs: AgentLogService): void {
  const onRequest = requirePrincipal("user");
  app.get(`${AGENT_PATH}/logs`, { onRequest, schema: getAgentLogs }, async (request, reply) => {
    const lines = await logs.open(principalOf(request, "user"), request.params.id, request.query);
    return reply.send(logText(request, reply, lines));
  });
}

export interface AgentActionRouteServices {
  readonly agents: AgentService;
  readonly agentLife: AgentActionsService;
}

const tags = ["Agents"];

const startAgent = {
  summary: "Start an agent",
  description:
    "The agent keeps running across restarts of its node and of this server. A failed agent is restarted. Returns immediately: " +
    "its state and events show progress. Rejected while a secret that its connectors, guest or config need is missing.",
  operationId: "startAgent",
  tags,
  errors: [
    "not_found",
    "permission_denied",
    "project_deleting",
    "missing_secrets",
    "node_not_enrolled",
    "agent_deleting",
  ],
  params: agentParams,
  body: z.strictObject({}).nullish(),
  response: { 200: agentSchema },
} satisfies FastifySchema;

const stopAgent = {
  summary: "Stop an agent",
  description:
    "Its token stops working immediately, and its program gets time to shut down. The agent stays stopped until it is started.",
  operationId: "stopAgent",
  tags,
  errors: ["not_found", "permission_denied", "project_deleting", "agent_deleting"],
  params: agentParams,
  body: z.strictObject({}).nullish(),
  response: { 200: agentSchema },
} satisfies FastifySchema;

const getAgentConfig = {
  summary: "Get an agent's config",
  description: "The settings beyond its fields, as they were written. Its guest's preset supplies defaults.",
  operationId: "getAgentConfig",
  tags,
  errors: ["not_found"],
  params: agentParams,
  response: { 200: agentConfigSchema },
} satisfies FastifySchema;

const listAgentEvents = {
  summary: "List an agent's events",
  description:
    "Newest first, each with its reason. Kept for 90 days. To find out why an agent restarted, see the newest `workload_exited` or `workload_stopped`.",
  operationId: "listAgentEvents",
  tags,
  errors: ["not_found"],
  params: agentParams,
  querystring: z.strictObject({
    ...historyQuery("workload_exited,reported_failed"),
  }),
  response: { 200: z.object({ events: z.array(agentEventSchema), nextPageToken: z.string() }) },
} satisfies FastifySchema;

export function registerAgentActionRoutes(app: PlatformApp, { agents, agentLife }: AgentActionRouteServices): void {
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
