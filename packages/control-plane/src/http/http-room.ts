import type { RequestTally } from "@fairlead/hosting/requests/request-tally";
import { callersOf } from "@fairlead/inference/calls/caller";
import type { ModelCatalog } from "@fairlead/inference/calls/model-catalog";
import { createInferenceHost, type InferenceHost } from "@fairlead/inference/host/inference-host";
import { inferencePaths } from "@fairlead/inference/host/inference-paths";
import type { ProjectOwners } from "@fairlead/inference/ports/ports";
import type { Access } from "../access/access-room.ts";
import type { Credentials } from "../access/auth/credentials.ts";
import type { Repeats } from "../access/repeats-room.ts";
import type { Fleet } from "../fleet/fleet-room.ts";
import type { WorkloadRelay } from "../fleet/workload-gateway/workload-relay.ts";
import type { StopDeadline } from "../installation/stop/stop-deadline.ts";
import type { Money } from "../money/money-room.ts";
import { asRoom, type Ground, type Opened, type Room } from "../room.ts";
import { addInference } from "../telemetry/metrics/inference-metrics.ts";
import type { OtlpTraces } from "../telemetry/traces/otlp-traces.ts";
import { trustedPeers } from "./limits/client-address.ts";
import { OpenConnections } from "./limits/open-connections.ts";
import { findAddresses } from "./listening/addresses.ts";
import { TlsFront } from "./listening/tls-front.ts";
import { createPlatform } from "./platform.ts";
import { bodyRoom } from "./requests/body-parser.ts";

type Front = Awaited<ReturnType<typeof openFront>>;

type Base = Pick<Ground, "config" | "log" | "clock" | "bounds">;

/** What both hosts listen behind. @throws StartError when a port is taken */
export async function openFront({ config: { server }, log, clock, bounds }: Base, opened: Opened) {
  // Null where a proxy ends TLS, or nothing does.
  const tls = server.tls === undefined ? null : new TlsFront({ ...server.tls, log, clock });
  if (tls !== null) opened.add(() => tls.close());
  const addresses = await findAddresses(server);
  const { maxConnections: max, maxConnectionsPerAddress: maxPerAddress, trustedProxies } = server;
  const connections = new OpenConnections({ max, maxPerAddress, isTrusted: trustedPeers(trustedProxies), bounds });
  return { tls, addresses, connections };
}

interface InferenceOptions extends Ground {
  readonly repeats: Repeats;
  readonly access: Access;
  readonly credentials: Credentials;
  readonly money: Money;
  readonly models: ModelCatalog;
  readonly owners: ProjectOwners;
  readonly traces: OtlpTraces | null;
}

/** The inference host, with what it needs of the other rooms. It does not listen yet. */
export function openInference(options: InferenceOptions) {
  const { config, clock, ids, log, bounds, models, owners, repeats, credentials, traces } = options;
  const { keys, limiter, callLimiter } = options.access;
  const { billing, usageRecorder } = options.money;
  const { maxRetryWaitSeconds, allowedOrigins, ...settings } = config.inference;
  const inference: InferenceHost = createInferenceHost({
    clock,
    ids,
    log,
    bounds,
    callers: callersOf({ keys, workers: credentials.workers }),
    models,
    owners,
    billing,
    answers: repeats.answers,
    limiter: callLimiter,
    limits: { ...settings, maxRetryWaitMs: maxRetryWaitSeconds * 1000 },
    platformUpstreams: new Set(config.providers.platform.map(({ name }) => name)),
    allowedOrigins,
    traces: traces ?? undefined,
    random: Math.random,
    onEnded: (end) => usageRecorder.record(end),
  });
  return asRoom({
    inference,
    metrics: (registry) => addInference(registry, { inference, limiter, usageRecorder, billing }),
  });
}

interface HostOptions extends Ground {
  readonly front: Front;
  readonly deadline: StopDeadline;
  readonly requests: RequestTally;
  readonly credentials: Credentials;
  readonly inference: InferenceHost;
  readonly fleet: Fleet;
  readonly relay: WorkloadRelay;
  readonly rooms: readonly Room[];
}

/** The platform host, with the routes of all rooms. It does not listen yet. */
export function openPlatform(options: HostOptions) {
  const { config, bounds, installation, limits, front, credentials, inference, fleet, relay, rooms } = options;
  const { addresses } = front;
  return createPlatform({
    ...options,
    ...credentials,
    addresses,
    bodies: bodyRoom(() => bounds.reached("platform_bodies"), inference.pace),
    trustedProxies: config.server.trustedProxies,
    routes: (app) => {
      for (const room of rooms) room.routes?.(app);
    },
    document: { publicUrl: addresses.publicUrl, inferencePaths: inferencePaths(addresses.modelsUrl) },
    publicJwks: () => installation.keyRing.publicJwks(),
    ping: () => installation.ping(),
    upgrades: [...fleet.upgrades, relay.upgrades],
    diversion: relay,
    failures: limits.upgrades,
    stopStreams: () => fleet.stopLogs(),
    cutDaemons: () => fleet.cut(),
  });
}
