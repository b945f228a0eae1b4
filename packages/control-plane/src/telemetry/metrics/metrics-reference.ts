import { Distribution } from "@fairlead/hosting/distribution";
import { RequestTally } from "@fairlead/hosting/requests/request-tally";
import { InferenceCounters } from "@fairlead/inference/host/inference-counters";
import { UpstreamLeases } from "@fairlead/inference/routing/upstream-leases";
import { AGENT_LIFECYCLE_STATES, type AgentLifecycleState } from "@fairlead/protocol/agents";
import { NODE_STATUSES, type NodeStatus } from "@fairlead/protocol/resources";
import { systemClock } from "@fairlead/protocol/values/clock";
import { z } from "zod";
import { StatementWatch } from "../../installation/db/statement-watch.ts";
import { createLog } from "../../installation/process/log.ts";
import { BoundCounters } from "../bounds/bound-counters.ts";
import { addChat } from "./chat-metrics.ts";
import { addFleet } from "./fleet-metrics.ts";
import { addInference } from "./inference-metrics.ts";
import type { MetricSet } from "./metric-kinds.ts";
import { addServer, createMetrics } from "./metrics.ts";

/** prom-client's metadata, which the text format omits for metrics without values. */
const metricSchema = z.object({
  name: z.string(),
  help: z.string(),
  type: z.enum(["counter", "gauge", "histogram"]),
  labelNames: z.array(z.string()),
});
type Metric = z.infer<typeof metricSchema>;

/** The text of `docs/metrics.md`. Tests compare it with the page, and the page with `/metrics` of a running server. */
export function metricsReference(): string {
  const metrics = createMetrics(idleServer())
    .getMetricsAsArray()
    .map((metric) => metricSchema.parse(metric))
    .filter(({ name }) => name.startsWith("fairlead_"))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  return [
    "# Metrics",
    "",
    "Generated from `packages/control-plane/src/telemetry/metrics`.",
    "",
    "`GET {base_url}/metrics` returns these metrics in the Prometheus text format. For access and suggested alerts see",
    "[operations](operations.md#metrics). Times are in seconds and money is in US dollars. A histogram has the series `…_bucket{le}`, `…_sum` and",
    "`…_count`. Projects, nodes, keys and users are not labels, so the number of series does not grow with them. The Node.js metrics",
    "`process_…` and `nodejs_…` are also available: memory, CPU, open files, event loop, garbage collection.",
    "",
    "| metric | type | meaning |",
    "| --- | --- | --- |",
    ...metrics.map(row),
    "",
  ].join("\n");
}

function row({ name, type, help, labelNames }: Metric): string {
  const labels = labelNames.length === 0 ? "" : `{${labelNames.join(",")}}`;
  return `| \`${name}${labels}\` | ${type} | ${help} |`;
}

/** Of a server that has done nothing yet. */
function idleServer(): readonly MetricSet[] {
  const requests = new RequestTally();
  const places = new UpstreamLeases(systemClock);
  const load = { callsInFlight: 0, bufferedBytes: 0 };
  const noNodes = NODE_STATUSES.map((status) => [status, 0] as const);
  const noAgents = AGENT_LIFECYCLE_STATES.map((state) => [state, 0] as const);
  const server = {
    platformRequests: requests,
    inferenceRequests: requests,
    statements: new StatementWatch({ log: createLog({ level: "silent" }), clock: systemClock }),
    store: { fault: null },
    bounds: new BoundCounters(),
    tls: null,
  };
  const inference = {
    inference: { load, counters: new InferenceCounters(), places },
    limiter: { refusals: new Map() },
    billing: { load: { holds: 0, held: 0 } },
    usageRecorder: { dropped: 0 },
  };
  const fleet = {
    links: { open: 0 },
    tunnels: { open: 0 },
    hub: { heartbeats: 0, opened: 0 },
    fleet: { figures: { braked: false, overdue: 0, heartbeatSeconds: 0, batches: new Distribution([1]) } },
    admissions: { links: { refused: 0 }, tunnels: { refused: 0 } },
    nodesByStatus: async () => Object.fromEntries(noNodes) as Record<NodeStatus, number>,
    agentsByState: async () => Object.fromEntries(noAgents) as Record<AgentLifecycleState, number>,
  };
  return [
    (registry) => addServer(registry, server),
    (registry) => addInference(registry, inference),
    (registry) => addChat(registry, { turnCounters: { running: 0, turns: () => [] } }),
    (registry) => addFleet(registry, fleet),
  ];
}
