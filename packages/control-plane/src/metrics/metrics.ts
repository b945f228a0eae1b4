import type { NodeStatus } from "@fairlead/protocol/resources";
import { collectDefaultMetrics, Registry } from "prom-client";
import type { StatementWatch } from "../db/statement-watch.ts";
import type { RequestTally } from "../http/request-tally.ts";
import type { InferenceHost } from "../inference/inference-host.ts";
import { addChat, type ChatMetricSources } from "./chat-metrics.ts";
import { addInference, type InferenceMetricSources } from "./inference-metrics.ts";
import { counter, distribution, gauge, type Sample } from "./metric-kinds.ts";

/** Where the figures are. All are counted elsewhere, as plain numbers, and read here when somebody scrapes. */
export interface MetricSources extends InferenceMetricSources, ChatMetricSources {
  readonly platformRequests: RequestTally;
  readonly inference: Pick<InferenceHost, "load" | "counters" | "places" | "requests">;
  readonly links: { readonly open: number };
  readonly tunnels: { readonly open: number };
  readonly hub: { readonly heartbeats: number };
  readonly statements: StatementWatch;
  /** Every status, those of no node too. */
  readonly nodesByStatus: () => Promise<Readonly<Record<NodeStatus, number>>>;
}

/**
 * The figures of this process and its work, for Prometheus. No project and no id is a label: their number grows without end,
 * and who scrapes need not know them.
 */
export function createMetrics(sources: MetricSources): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  addRequests(registry, sources);
  addInference(registry, sources);
  addChat(registry, sources);
  addFleet(registry, sources);
  const { times } = sources.statements;
  distribution(registry, "fairlead_store_statement_seconds", {
    help: "Statements of the store; `main` holds up the main thread on SQLite.",
    labelNames: ["handle"],
    read: () => [
      { labels: { handle: "main" }, values: times.main },
      { labels: { handle: "long" }, values: times.long },
      { labels: { handle: "writes" }, values: times.writes },
    ],
  });
  return registry;
}

function addRequests(registry: Registry, { platformRequests, inference }: MetricSources): void {
  const hosts = [["platform", platformRequests] as const, ["inference", inference.requests] as const];
  counter(registry, "fairlead_http_requests_total", {
    help: "Answered requests; status 0 where the caller left first.",
    labelNames: ["host", "method", "route", "status"],
    read: () =>
      hosts.flatMap(([host, tally]) =>
        Array.from(tally.counts(), ({ count, ...labels }): Sample => [{ host, ...labels }, count]),
      ),
  });
  distribution(registry, "fairlead_http_request_seconds", {
    help: "From the request's head to the end of its answer.",
    labelNames: ["host", "method", "route"],
    read: () =>
      hosts.flatMap(([host, tally]) =>
        Array.from(tally.times(), ({ method, route, seconds }) => ({
          labels: { host, method, route },
          values: seconds,
        })),
      ),
  });
}

function addFleet(registry: Registry, { links, tunnels, hub, nodesByStatus }: MetricSources): void {
  gauge(registry, "fairlead_daemon_links_open", { help: "Daemons connected.", read: () => [[{}, links.open]] });
  gauge(registry, "fairlead_tunnels_open", { help: "Nodes that can be reached.", read: () => [[{}, tunnels.open]] });
  counter(registry, "fairlead_heartbeats_total", {
    help: "Heartbeats of daemons.",
    read: () => [[{}, hub.heartbeats]],
  });
  gauge(registry, "fairlead_nodes", {
    help: "Nodes by status.",
    labelNames: ["status"],
    read: async () => Object.entries(await nodesByStatus()).map(([status, count]): Sample => [{ status }, count]),
  });
}
