import type { RequestTally } from "@fairlead/hosting/requests/request-tally";
import { collectDefaultMetrics, Registry } from "prom-client";
import type { StatementWatch } from "../../installation/db/statement-watch.ts";
import type { BoundCounters } from "../bounds/bound-counters.ts";
import { counter, distribution, gauge, type MetricSet, type Sample } from "./metric-kinds.ts";

/** Server-wide metrics. All are counted elsewhere as plain numbers and read on each scrape. */
export interface ServerMetricSources {
  readonly platformRequests: RequestTally;
  readonly inferenceRequests: RequestTally;
  readonly statements: StatementWatch;
  readonly store: { readonly fault: Error | null };
  readonly bounds: Pick<BoundCounters, "counts">;
  /** Null without TLS. */
  readonly tls: { readonly expiresAt: number } | null;
}

/** Metrics of this process for Prometheus. Projects and IDs are not labels: their number is unbounded, and scrapers need not know them. */
export function createMetrics(sets: readonly MetricSet[]): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const add of sets) add(registry);
  return registry;
}

export function addServer(registry: Registry, sources: ServerMetricSources): void {
  addRequests(registry, sources);
  counter(registry, "fairlead_bounds_reached_total", {
    help: "How often each limit on external input was reached. See security.md for the limits.",
    labelNames: ["bound"],
    read: () => Array.from(sources.bounds.counts, ([bound, count]): Sample => [{ bound }, count]),
  });
  gauge(registry, "fairlead_tls_certificate_expiry_timestamp_seconds", {
    help: "When the certificate of `server.tls` expires, as a Unix time. Absent without a certificate.",
    read: () => (sources.tls === null ? [] : [[{}, sources.tls.expiresAt / 1000]]),
  });
  gauge(registry, "fairlead_store_writable", {
    help: "0 while the store rejects writes because the disk is full or damaged, or the database is read-only.",
    read: () => [[{}, sources.store.fault === null ? 1 : 0]],
  });
  const { times } = sources.statements;
  distribution(registry, "fairlead_store_statement_seconds", {
    help: "Statements of the store. With SQLite, `main` blocks the main thread.",
    labelNames: ["handle"],
    read: () => [
      { labels: { handle: "main" }, values: times.main },
      { labels: { handle: "long" }, values: times.long },
      { labels: { handle: "writes" }, values: times.writes },
    ],
  });
}

function addRequests(registry: Registry, sources: ServerMetricSources): void {
  const hosts = [["platform", sources.platformRequests] as const, ["inference", sources.inferenceRequests] as const];
  counter(registry, "fairlead_http_requests_total", {
    help: "Completed requests. Status 0: the client disconnected first.",
    labelNames: ["host", "method", "route", "status"],
    read: () =>
      hosts.flatMap(([host, tally]) =>
        Array.from(tally.counts(), ({ count, ...labels }): Sample => [{ host, ...labels }, count]),
      ),
  });
  distribution(registry, "fairlead_http_request_seconds", {
    help: "From the request headers to the end of the response.",
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
