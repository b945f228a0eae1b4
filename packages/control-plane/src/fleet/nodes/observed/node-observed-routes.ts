import { nodeEventSchema } from "@fairlead/protocol/resources";
import { rfc3339 } from "@fairlead/protocol/values/clock";
import type { FastifySchema } from "fastify";
import { z } from "zod";
import type { PlatformApp } from "../../../http/platform-host.ts";
import { historyQuery } from "../../../http/requests/history-query.ts";
import { paginate } from "../../../http/requests/pagination.ts";
import { principalOf, requirePrincipal } from "../../../http/requests/require-principal.ts";
import { NODE_PATH, nodeParams } from "../node-routes.ts";
import type { NodeService } from "../node-service.ts";
import type { NodeReportService } from "./node-report-service.ts";

export interface NodeObservedRouteServices {
  readonly nodes: NodeService;
  readonly reports: NodeReportService;
}

const tags = ["Nodes"];

const listNodeEvents = {
  summary: "List a node's events",
  description:
    "Newest first, each with its reason. Kept for 90 days. To find out why an engine restarted, see the newest `workload_exited` or `workload_stopped`.",
  operationId: "listNodeEvents",
  tags,
  errors: ["not_found"],
  params: nodeParams,
  querystring: z.strictObject({
    ...historyQuery("workload_exited,workload_started"),
  }),
  response: { 200: z.object({ events: z.array(nodeEventSchema), nextPageToken: z.string() }) },
} satisfies FastifySchema;

/** The node's reported state. */
export function registerNodeObservedRoutes(app: PlatformApp, { nodes, reports }: NodeObservedRouteServices): void {
  // The interface has a second path for engine workloads; only engines have a version.
  for (const kind of ["workload", "engine"]) {
    app.get(
      `${NODE_PATH}/${kind}-version`,
      {
        onRequest: requirePrincipal("user", "node"),
        schema: {
          summary: `Get the version of the node's ${kind}`,
          description: "The running version or, if nothing is running, the last one.",
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
