import type { RequestTally } from "@fairlead/hosting/requests/request-tally";
import type { InferenceHost } from "@fairlead/inference/host/inference-host";
import type { TlsFront } from "../http/listening/tls-front.ts";
import type { StatementWatch } from "../installation/db/statement-watch.ts";
import { asRoom, type Ground, type Room } from "../room.ts";
import { addServer, createMetrics } from "./metrics/metrics.ts";
import { registerMetricsRoutes } from "./metrics/metrics-routes.ts";
import { ScrapeToken } from "./metrics/scrape-token.ts";
import { openOtlpTraces } from "./traces/otlp-traces.ts";

/** Traces of calls; null where the operator collects none. */
export async function openTraces({ config, log, clock }: Ground) {
  const { otlpEndpoint: endpoint } = config.telemetry;
  const traces = endpoint === undefined ? null : await openOtlpTraces({ clock, endpoint, log });
  return asRoom({ traces, close: async () => traces?.close() });
}

interface TelemetryOptions extends Ground {
  readonly statements: StatementWatch;
  readonly tls: TlsFront | null;
  /** Of the platform host. */
  readonly requests: RequestTally;
  readonly inference: InferenceHost;
  /** All others. */
  readonly rooms: readonly Room[];
}

/** `/metrics`, with the figures of every room. */
export function openTelemetry({ config, log, clock, installation, publicUrl, ...options }: TelemetryOptions) {
  const { statements, tls, requests: platformRequests, inference, rooms, bounds } = options;
  const inferenceRequests = inference.requests;
  const server = { statements, tls, platformRequests, inferenceRequests, bounds, store: installation.health };
  const { tokenFile } = config.metrics;
  const scrapeToken = tokenFile === undefined ? null : new ScrapeToken({ file: tokenFile, clock, log });
  return asRoom({
    routes: (app) => {
      const registry = createMetrics([
        (all) => addServer(all, server),
        ...rooms.flatMap(({ metrics = [] }) => metrics),
      ]);
      registerMetricsRoutes(app, { registry, scrapeToken, publicUrl });
    },
  });
}
