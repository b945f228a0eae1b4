import { rfc3339 } from "@fairlead/protocol/clock";
import { nodeEventSchema } from "@fairlead/protocol/resources";
import type { FastifySchema } from "fastify";
import { z } from "zod";
import { historyQuery } from "../http/history-query.ts";
import { paginate } from "../http/pagination.ts";
import type { PlatformApp } from "../http/platform-host.ts";
import { principalOf, requirePrincipal } from "../http/require-principal.ts";
import type { NodeReportService } from "./node-report-service.ts";
import { NODE_PATH, nodeParams } from "./node-routes.ts";
import type { NodeService } from "./node-service.ts";

export interface NodeObservedRouteServices {
  readonly nodes: NodeService;
  readonly reports: NodeReportService;
}

const tags = ["Nodes"];

const listNodeEvents = {
  summary: "List what happened to a node",
  description:
    "Each with its reason: the newest first; kept for 90 days. Why did it restart? The newest `workload_exited` or `workload_stopped` says.",
  operationId: "listNodeEvents",
  tags,
  errors: ["not_found"],
  params: nodeParams,
  querystring: z.strictObject({
    ...historyQuery("workload_exited,workload_started"),
  }),
  response: { 200: z.object({ events: z.array(nodeEventSchema), nextPageToken: z.string() }) },
} satisfies FastifySchema;

/** What the node said of itself. */
export function registerNodeObservedRoutes(app: PlatformApp, { nodes, reports }: NodeObservedRouteServices): void {
  // The interface names a second path for workloads of the engine kind; the engine is the only kind with a version.
  for (const kind of ["workload", "engine"]) {
    app.get(
      `${NODE_PATH}/${kind}-version`,
      {
        onRequest: requirePrincipal("user", "node"),
        schema: {
          summary: `Get the version of the node's ${kind}`,
          description: "What runs; with nothing running, what ran last.",
          operationId: `get${kind === "engine" ? "Engine" : "Workload"}Version`,
          tags,
          errors: ["not_found", "no_running_engine"],
          params: nodeParams,
          response: { 200: z.object({ version: z.string() }) },
        },
      },
      async (request) => {
        const node = await nodes.get(principalOf(request, "user", "node"), request.params.id);
        return { version: await reports.engineVersion(node.id) };
      },
    );
  }

  app.get(`${NODE_PATH}/events`, { onRequest: requirePrincipal("user"), schema: listNodeEvents }, async (request) => {
    const caller = principalOf(request, "user");
    const { kind: kinds, since, ...asked } = request.query;
    const { items, nextPageToken } = await paginate(asked, {
      fetch: (page) => nodes.events(caller, request.params.id, { ...page, kinds, since }),
      cursorOf: (event) => event.id,
    });
    return { events: items.map(({ nodeId: _node, at, ...event }) => ({ ...event, at: rfc3339(at) })), nextPageToken };
  });
}
