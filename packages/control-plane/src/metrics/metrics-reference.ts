import { AGENT_LIFECYCLE_STATES, type AgentLifecycleState } from "@fairlead/protocol/agents";
import { systemClock } from "@fairlead/protocol/clock";
import { NODE_STATUSES, type NodeStatus } from "@fairlead/protocol/resources";
import { z } from "zod";
import { StatementWatch } from "../db/statement-watch.ts";
import { Distribution } from "../distribution.ts";
import { RequestTally } from "../http/request-tally.ts";
import { InferenceCounters } from "../inference/inference-counters.ts";
import { UpstreamPlaces } from "../inference/upstream-places.ts";
import { createLog } from "../log.ts";
import { createMetrics, type MetricSources } from "./metrics.ts";

/** What prom-client keeps of a metric, and the text format does not tell while it has no value. */
const metricSchema = z.object({
  name: z.string(),
  help: z.string(),
  type: z.enum(["counter", "gauge", "histogram"]),
  labelNames: z.array(z.string()),
});
type Metric = z.infer<typeof metricSchema>;

/** The text of `docs/metrics.md`; tests compare it with that page, and the page with `/metrics` of a running server. */
export function metricsReference(): string {
  const metrics = createMetrics(noSources())
    .getMetricsAsArray()
    .map((metric) => metricSchema.parse(metric))
    .filter(({ name }) => name.startsWith("fairlead_"))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  return [
    "# Metrics",
    "",
    "Generated from `packages/control-plane/src/metrics`.",
    "",
    "What `GET {base_url}/metrics` tells, in the text format of Prometheus; who may ask, and what is worth an alarm, is in",
    "[operations.md](operations.md#figures). Times are seconds and money is US dollars. A histogram has the series `…_bucket{le}`, `…_sum` and",
    "`…_count`. No project, node, key or person is a label, so the number of series does not grow with them. Beside these there are Node's own",
    "`process_…` and `nodejs_…`: memory, CPU, open files, event loop, garbage collection.",
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
function noSources(): MetricSources {
  const requests = new RequestTally();
  const places = new UpstreamPlaces(systemClock);
  const load = { callsInFlight: 0, bufferedBytes: 0 };
  const noNodes = NODE_STATUSES.map((status) => [status, 0] as const);
  const noAgents = AGENT_LIFECYCLE_STATES.map((state) => [state, 0] as const);
  return {
    platformRequests: requests,
    inference: { load, counters: new InferenceCounters(), places, requests },
    limiter: { refusals: new Map() },
    billing: { load: { holds: 0, held: 0 } },
    usageRecorder: { dropped: 0 },
    turnCounters: { running: 0, turns: () => [] },
    links: { open: 0 },
    tunnels: { open: 0 },
    hub: { heartbeats: 0, opened: 0 },
    fleet: { figures: { braked: false, overdue: 0, heartbeatSeconds: 0, batches: new Distribution([1]) } },
    admissions: { links: { refused: 0 }, tunnels: { refused: 0 } },
    statements: new StatementWatch({ log: createLog({ level: "silent" }), clock: systemClock }),
    tls: null,
    nodesByStatus: async () => Object.fromEntries(noNodes) as Record<NodeStatus, number>,
    agentsByState: async () => Object.fromEntries(noAgents) as Record<AgentLifecycleState, number>,
  };
}
