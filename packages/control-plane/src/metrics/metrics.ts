import { collectDefaultMetrics, Registry } from "prom-client";
import type { StatementWatch } from "../db/statement-watch.ts";
import type { RequestTally } from "../http/request-tally.ts";
import type { InferenceHost } from "../inference/inference-host.ts";
import { addChat, type ChatMetricSources } from "./chat-metrics.ts";
import { addFleet, type FleetMetricSources } from "./fleet-metrics.ts";
import { addInference, type InferenceMetricSources } from "./inference-metrics.ts";
import { counter, distribution, gauge, type Sample } from "./metric-kinds.ts";

/** Where the figures are. All are counted elsewhere, as plain numbers, and read here when somebody scrapes. */
export interface MetricSources extends InferenceMetricSources, ChatMetricSources, FleetMetricSources {
  readonly platformRequests: RequestTally;
  readonly inference: Pick<InferenceHost, "load" | "counters" | "places" | "requests">;
  readonly statements: StatementWatch;
  /** Null where the hosts speak plain http. */
  readonly tls: { readonly expiresAt: number } | null;
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
  gauge(registry, "fairlead_tls_certificate_expiry_timestamp_seconds", {
    help: "When the certificate of `server.tls` runs out, as a Unix time; nothing without one.",
    read: () => (sources.tls === null ? [] : [[{}, sources.tls.expiresAt / 1000]]),
  });
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
