import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { type Clock, systemClock } from "@fairlead/protocol/clock";
import { DomainError } from "@fairlead/protocol/errors";
import { systemIds } from "@fairlead/protocol/ids";
import { openAdminSocket } from "./admin/admin-socket.ts";
import { type Authenticate, createAuthenticate } from "./auth/authenticate.ts";
import type { Config } from "./config.ts";
import { holdDataDir } from "./db/data-dir.ts";
import { StatementWatch } from "./db/statement-watch.ts";
import { holdStore } from "./db/store-lock.ts";
import { CallsInFlight } from "./http/calls-in-flight.ts";
import { listen, type PortRequest, reservePort, urlOf } from "./http/listen.ts";
import { createPlatformHost, type PlatformApp } from "./http/platform-host.ts";
import { RequestTally } from "./http/request-tally.ts";
import { UpgradeDispatcher } from "./http/upgrade-dispatcher.ts";
import { idempotencyRetention } from "./idempotency/idempotency-retention.ts";
import { IdempotencyService } from "./idempotency/idempotency-service.ts";
import { IdempotencyStore } from "./idempotency/idempotency-store.ts";
import { createInferenceHost, type InferenceHost } from "./inference/inference-host.ts";
import { inferencePaths } from "./inference/inference-paths.ts";
import { type Installation, openInstallation, type Ports } from "./installation.ts";
import { registerKeyRoutes } from "./keys/key-routes.ts";
import { KeyService } from "./keys/key-service.ts";
import { KeyStore } from "./keys/key-store.ts";
import { daemonUpgrades } from "./link/daemon-upgrades.ts";
import { LinkHub } from "./link/link-hub.ts";
import { LinkServer } from "./link/link-server.ts";
import { createLog, type Log } from "./log.ts";
import { createMetrics } from "./metrics/metrics.ts";
import { registerMetricsRoutes } from "./metrics/metrics-routes.ts";
import { registerNodeDaemonRoutes } from "./nodes/node-daemon-routes.ts";
import { nodeEventRetention } from "./nodes/node-event-retention.ts";
import { registerNodeObservedRoutes } from "./nodes/node-observed-routes.ts";
import { registerNodeRoutes } from "./nodes/node-routes.ts";
import { registerNodeSecretRoutes } from "./nodes/node-secret-routes.ts";
import { createNodeIdentities, createNodeServices, type NodeServices } from "./nodes/node-services.ts";
import { nodeStores } from "./nodes/node-stores.ts";
import { startNodeSweeper } from "./nodes/node-sweeper.ts";
import { registerProjectRoutes } from "./projects/project-routes.ts";
import { ProjectService } from "./projects/project-service.ts";
import { projectStores } from "./projects/project-stores.ts";
import { type Retention, startRetention } from "./retention.ts";
import { SecretService } from "./secrets/secret-service.ts";
import { SecretStore } from "./secrets/secret-store.ts";
import { TunnelHub } from "./tunnel/tunnel-hub.ts";

/** The composition root: the only file that sees every resource. */

export interface RunningServer {
  readonly platformUrl: string;
  readonly inferenceUrl: string;
  /** Stops admitting, lets running calls end up to the configured deadline, then closes everything. Repeating it waits for the first. */
  close(): Promise<void>;
}

/** How to close what was opened, in the order of opening; run backwards, whether the start fails or the server stops. */
type Closers = (() => Promise<void> | void)[];

const LINK_RESYNC_MS = 10 * 60_000;

/** @throws StartError when a port is taken, another server holds the data folder, or the store is of a newer version. */
export async function startServer(config: Config): Promise<RunningServer> {
  const closers: Closers = [];
  try {
    const urls = await open(config, createLog(config.log), closers);
    let closing: Promise<void> | null = null;
    return {
      ...urls,
      close: () => {
        closing ??= closeAll(closers);
        return closing;
      },
    };
  } catch (error) {
    // The reason for the failed start is worth more than what came of it.
    await closeAll(closers).catch(() => {});
    throw error;
  }
}

/** Runs every one of them, so that a fault in one does not leave the data folder locked. */
async function closeAll(closers: Closers): Promise<void> {
  const faults: unknown[] = [];
  for (const close of closers.splice(0).toReversed()) {
    try {
      await close();
    } catch (fault) {
      faults.push(fault);
    }
  }
  if (faults.length > 0) throw new AggregateError(faults, "not everything could be closed");
}

async function open(config: Config, log: Log, closers: Closers): Promise<Omit<RunningServer, "close">> {
  const lock = await holdDataDir(config.dataDir);
  closers.push(() => lock.release());
  const storeLock = await holdStore(config.database.url);
  closers.push(() => storeLock.release());
  const addresses = await findAddresses(config);
  const ports: Ports = { clock: systemClock, ids: systemIds(() => systemClock.now()) };
  const statements = new StatementWatch({ log, clock: ports.clock });
  const installation = await openInstallation(config, { ...ports, onStatement: statements.observe });
  closers.push(() => installation.close());
  const deadline = new StopDeadline(ports.clock, config.server.shutdownSeconds * 1000);
  const context: Context = { config, log, ports, installation, addresses, deadline, statements };
  const services = createServices(context);
  const stopSweeper = startNodeSweeper(services.nodes.liveness, log);
  closers.push(stopSweeper);
  for (const retention of retentions(installation, ports.clock)) closers.push(startRetention(retention, log));
  // Undone backwards: the platform host stops listening, calls drain through the tunnels, and only then the tunnels are cut.
  const inference = createInference(context, services);
  const platform = createPlatform(context, services, inference);
  closers.push(() => platform.cut());
  closers.push(() => inference.drain(deadline.leftMs()));
  await listen(inference.server, addresses.inference);
  await platform.listen();
  closers.push(() => platform.stop());
  const socket = await openAdminSocket({ ...ports, log, dataDir: config.dataDir, admin: installation.admin });
  closers.push(() => socket.close());
  const { platformUrl, inferenceUrl } = addresses;
  log.info({ platformUrl, inferenceUrl, installationId: installation.record.id }, "server started");
  return { platformUrl, inferenceUrl };
}

interface Context {
  readonly config: Config;
  readonly log: Log;
  readonly ports: Ports;
  readonly installation: Installation;
  readonly addresses: Addresses;
  readonly deadline: StopDeadline;
  readonly statements: StatementWatch;
}

/** On the handle for long work, so that nobody waits for them. */
function retentions({ longReads }: Installation, clock: Clock): Retention[] {
  return [
    nodeEventRetention(nodeStores(longReads).events, clock),
    idempotencyRetention(new IdempotencyStore(longReads), clock),
  ];
}

/** One deadline for the whole stop, from the moment that it was asked for. */
class StopDeadline {
  readonly #clock: Clock;
  readonly #ms: number;
  #begun: number | null = null;

  constructor(clock: Clock, ms: number) {
    this.#clock = clock;
    this.#ms = ms;
  }

  begin(): void {
    this.#begun ??= this.#clock.monotonic();
  }

  leftMs(): number {
    const gone = this.#begun === null ? 0 : this.#clock.monotonic() - this.#begun;
    return Math.max(0, this.#ms - gone);
  }
}

interface Addresses {
  readonly platform: PortRequest;
  readonly inference: PortRequest;
  /** Where the hosts listen; `publicUrl` and `modelsUrl` are what others are told. */
  readonly platformUrl: string;
  readonly inferenceUrl: string;
  readonly publicUrl: string;
  readonly modelsUrl: string;
}

/** Before the store is touched: a taken port must not cost a migration, and the services need the URLs. */
async function findAddresses({ server }: Config): Promise<Addresses> {
  const platform = { ...server.platform, setting: "server.platform.port" };
  const inference = { ...server.inference, setting: "server.inference.port" };
  const first = await reservePort(platform);
  try {
    const second = await reservePort(inference);
    await second.release();
    const platformUrl = urlOf(platform.host, first.port);
    const inferenceUrl = urlOf(inference.host, second.port);
    return {
      platform: { ...platform, port: first.port },
      inference: { ...inference, port: second.port },
      platformUrl,
      inferenceUrl,
      publicUrl: server.publicUrl ?? platformUrl,
      modelsUrl: server.modelsUrl ?? inferenceUrl,
    };
  } finally {
    await first.release();
  }
}

interface Services {
  readonly authenticate: Authenticate;
  readonly idempotency: IdempotencyService;
  readonly projects: ProjectService;
  readonly keys: KeyService;
  readonly nodes: NodeServices;
  readonly hub: LinkHub;
  readonly links: LinkServer;
  readonly tunnels: TunnelHub;
}

function createServices({ log, ports, installation, addresses }: Context): Services {
  const { db, tokens, users, record } = installation;
  const { publicUrl, modelsUrl } = addresses;
  const identities = createNodeIdentities(db);
  const projects = new ProjectService({ ...ports, stores: projectStores(db) });
  const { access } = projects;
  const secrets = new SecretService({ store: new SecretStore(db), sealer: installation.sealer, clock: ports.clock });
  const nodes = createNodeServices({
    ...ports,
    db,
    access,
    issuer: tokens,
    secrets,
    log,
    installation: record,
    publicUrl,
  });
  const { reports, liveness, changes } = nodes;
  const hub = new LinkHub({ reports, liveness, changes, clock: ports.clock, log, resyncMs: LINK_RESYNC_MS });
  const links = new LinkServer({ links: hub, log });
  const tunnels = new TunnelHub({ log });
  changes.listen(({ aspect, nodeId }) => {
    // A deleted node's credential is void at once, and so is what it has open.
    if (aspect !== "removed") return;
    links.disconnect(nodeId);
    tunnels.disconnect(nodeId);
    liveness.forget(nodeId);
  });
  return {
    authenticate: createAuthenticate({ tokens, sessions: users, nodes: identities, modelsUrl }),
    idempotency: new IdempotencyService({ db, clock: ports.clock }),
    projects,
    keys: new KeyService({ ...ports, keys: new KeyStore(db), access, randomBytes, publicUrl }),
    nodes,
    hub,
    links,
    tunnels,
  };
}

interface Platform {
  listen(): Promise<void>;
  /** Lets nothing new in; what runs goes on. */
  stop(): void;
  /** Ends links, tunnels, and at the deadline what still runs. */
  cut(): Promise<void>;
}

function createPlatform(context: Context, services: Services, inference: InferenceHost): Platform {
  const { log, ports, installation, addresses, deadline } = context;
  const { authenticate, links, tunnels } = services;
  const requests = new RequestTally();
  const { nodes } = nodeStores(installation.longReads);
  const nodesByStatus = (): ReturnType<typeof nodes.countByStatus> => nodes.countByStatus();
  const metrics = createMetrics({ ...services, ...context, platformRequests: requests, inference, nodesByStatus });
  let closed: Promise<void> | null = null;
  const app = createPlatformHost({
    ids: ports.ids,
    log,
    authenticate,
    requests,
    routes: (routes) => {
      registerRoutes(routes, services);
      registerMetricsRoutes(routes, metrics);
    },
    document: { publicUrl: addresses.publicUrl, inferencePaths: inferencePaths(addresses.modelsUrl) },
    health: {
      publicJwks: () => installation.keyRing.publicJwks(),
      ready: async () => {
        if (closed) throw new DomainError("unavailable", "The server is stopping.");
        await installation.ping();
      },
    },
  });
  const upgrades = new UpgradeDispatcher({ routes: daemonUpgrades(links, tunnels), authenticate, ids: ports.ids, log });
  const calls = new CallsInFlight(app.server);
  return {
    listen: async () => {
      await app.ready();
      upgrades.attach(app.server);
      await listen(app.server, addresses.platform);
    },
    stop: () => {
      deadline.begin();
      upgrades.stop();
      closed = app.close();
    },
    cut: async () => {
      await links.close();
      tunnels.close();
      upgrades.close();
      await Promise.race([calls.whenIdle(), delay(deadline.leftMs(), undefined, { ref: false })]);
      app.server.closeAllConnections();
      await closed;
    },
  };
}

function registerRoutes(app: PlatformApp, { idempotency, projects, keys, nodes }: Services): void {
  registerProjectRoutes(app, { projects, idempotency });
  registerKeyRoutes(app, { keys, idempotency });
  registerNodeRoutes(app, { ...nodes, idempotency });
  registerNodeObservedRoutes(app, nodes);
  registerNodeSecretRoutes(app, nodes.nodeChanges);
  registerNodeDaemonRoutes(app, nodes);
}

function createInference({ config, log, ports }: Context, { keys, nodes, tunnels }: Services): InferenceHost {
  return createInferenceHost({ ...ports, keys, engines: nodes.engines, tunnels, log, limits: config.inference });
}
