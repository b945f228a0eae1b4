import { systemClock } from "@fairlead/protocol/clock";
import { systemIds } from "@fairlead/protocol/ids";
import { openAdminSocket } from "./admin/admin-socket.ts";
import { MoneyAdmin } from "./admin/money-admin.ts";
import { agentEventRetention } from "./agents/agent-event-retention.ts";
import { agentStores } from "./agents/agent-stores.ts";
import { startAgentWatch } from "./agents/agent-watch.ts";
import { answerRetention } from "./answers/answer-retention.ts";
import { AnswerStore } from "./answers/answer-store.ts";
import { auditRetention } from "./audit/audit-retention.ts";
import { AuditStore } from "./audit/audit-store.ts";
import { removeSnapshots } from "./backup/snapshot.ts";
import { chatRetentions } from "./chat/chat-retention.ts";
import { createChatTurns } from "./chat-turns.ts";
import type { Config } from "./config.ts";
import { type Addresses, type Context, StopDeadline } from "./context.ts";
import { holdDataDir } from "./db/data-dir.ts";
import { StatementWatch } from "./db/statement-watch.ts";
import { storeLocation } from "./db/store-location.ts";
import { holdStore } from "./db/store-lock.ts";
import { weighBuffersWithHeap } from "./garbage-collection.ts";
import { listen, reservePort, urlOf } from "./http/listen.ts";
import { TlsFront } from "./http/tls-front.ts";
import { idempotencyRetention } from "./idempotency/idempotency-retention.ts";
import { IdempotencyStore } from "./idempotency/idempotency-store.ts";
import { callersOf } from "./inference/caller.ts";
import { createInferenceHost, type InferenceHost } from "./inference/inference-host.ts";
import { type Installation, openInstallation, type Ports } from "./installation.ts";
import { createLog, type Log } from "./log.ts";
import { startDailySweep } from "./machines/daily-sweep.ts";
import { startMachineRunner } from "./machines/machine-runner.ts";
import { nodeEventRetention } from "./nodes/node-event-retention.ts";
import { nodeStores } from "./nodes/node-stores.ts";
import { startNodeSweeper } from "./nodes/node-sweeper.ts";
import { oneTimeLinkRetention } from "./one-time-links/one-time-link-retention.ts";
import { OneTimeLinkStore } from "./one-time-links/one-time-link-store.ts";
import { LogLevelSwitch } from "./operations/log-level.ts";
import { OperationsAdmin } from "./operations/operations-admin.ts";
import { createPlatform } from "./platform.ts";
import { startProjectRemover } from "./projects/project-remover.ts";
import { startQuietHeap } from "./quiet-heap.ts";
import { type Retention, startRetention } from "./retention.ts";
import { tellServiceManager } from "./service-manager.ts";
import { createServices, type Services } from "./services.ts";
import { OAuthStore } from "./sign-in/oauth-store.ts";
import { signInRetention } from "./sign-in/sign-in-retention.ts";
import { type OtlpTraces, openOtlpTraces } from "./traces/otlp-traces.ts";
import { usageRetentions } from "./usage/usage-retention.ts";
import { UsageStore } from "./usage/usage-store.ts";
import { sessionRetention } from "./users/session-retention.ts";
import { SessionStore } from "./users/session-store.ts";

/** The composition root: the only file that sees every resource. */

export interface RunningServer {
  readonly platformUrl: string;
  readonly inferenceUrl: string;
  /** Where the first administrator makes their account; null once anybody is here. */
  readonly setUpUrl: string | null;
  /** Stops admitting, lets running calls end up to the configured deadline, then closes everything. Repeating it waits for the first. */
  close(): Promise<void>;
}

/** How to close what was opened, in the order of opening; run backwards, whether the start fails or the server stops. */
type Closers = (() => Promise<void> | void)[];

/** @throws StartError when a port is taken, another server holds the data folder, or the store is of a newer version. */
export async function startServer(config: Config): Promise<RunningServer> {
  const closers: Closers = [];
  const log = createLog(config.log);
  weighBuffersWithHeap();
  closers.push(startQuietHeap(systemClock, log));
  try {
    const urls = await open(config, log, closers);
    const told = tellServiceManager(config.serviceManager);
    closers.unshift(told.stopped);
    closers.push(told.stopping);
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
  await removeSnapshots(config.dataDir);
  const tls = config.server.tls === undefined ? null : new TlsFront({ ...config.server.tls, log, clock: systemClock });
  if (tls !== null) closers.push(() => tls.close());
  const addresses = await findAddresses(config);
  const ports: Ports = { clock: systemClock, ids: systemIds(() => systemClock.now()) };
  const statements = new StatementWatch({ log, clock: ports.clock });
  const installation = await openInstallation(config, {
    ...ports,
    publicUrl: addresses.publicUrl,
    onStatement: statements.observe,
  });
  closers.push(() => installation.close());
  tellOfMigration(installation, log);
  const deadline = new StopDeadline(ports.clock, config.server.shutdownSeconds * 1000);
  const context: Context = { config, log, ports, installation, addresses, tls, deadline, statements };
  const services = createServices(context);
  closers.push(() => services.keyUse.close());
  closers.push(() => services.billing.close());
  closers.push(() => services.usageRecorder.close());
  const recovered = await services.billing.recover();
  if (recovered > 0) log.warn({ calls: recovered }, "settled calls that were cut off when the server last stopped");
  const cutOff = await services.turnLog.closeOpen();
  if (cutOff > 0) log.warn({ turns: cutOff }, "closed chat turns that were cut off when the server last stopped");
  await services.oauth.start();
  const stopSweeper = startNodeSweeper({ ...services.nodes, log });
  closers.push(stopSweeper);
  closers.push(startAgents(context, services));
  closers.push(...startMachines(context, services));
  closers.push(startProjectRemover(services.projectRemoval, log));
  for (const retention of retentions(context, services)) closers.push(startRetention(retention, log));
  closers.push(() => services.upstreams.close());
  // Undone backwards: the platform host stops listening, calls drain through the tunnels, and only then the tunnels are cut.
  const traces = await openTraces(context);
  if (traces !== null) closers.push(() => traces.close());
  const inference = createInference(context, services, traces);
  const turns = createChatTurns(context, services, inference);
  const platform = createPlatform(context, { ...services, ...turns }, inference);
  closers.push(() => platform.cut());
  closers.push(() => turns.chatTurns.close());
  closers.push(() => inference.drain(deadline.leftMs()));
  await listen(inference.server, addresses.inference, tls);
  await platform.listen();
  closers.push(() => platform.stop());
  const socket = await openAdminSocket({
    ...ports,
    log,
    dataDir: config.dataDir,
    admin: installation.admin,
    money: new MoneyAdmin(services),
    operations: createOperationsAdmin(context),
  });
  closers.push(() => socket.close());
  const { platformUrl, inferenceUrl } = addresses;
  log.info({ platformUrl, inferenceUrl, installationId: installation.record.id }, "server started");
  return { platformUrl, inferenceUrl, setUpUrl: await linkForFirstStart(installation, log) };
}

function startAgents(
  { log, installation: { db } }: Context,
  { agentCourses: courses, nodes }: Services,
): Closers[number] {
  return startAgentWatch({ stores: agentStores(db), courses, nodes: nodes.changes, log });
}

function startMachines({ log, ports: { clock } }: Context, { machines, nodes }: Services): Closers {
  const { changes } = nodes;
  return [startMachineRunner({ ...machines, changes, clock, log }), startDailySweep(machines.sweeps, log)];
}

function createOperationsAdmin({ config, log, ports, installation }: Context): OperationsAdmin {
  return new OperationsAdmin({
    ...ports,
    ...installation,
    dataDir: config.dataDir,
    location: storeLocation(config),
    installationId: installation.record.id,
    logLevel: new LogLevelSwitch(log),
  });
}

function tellOfMigration({ migrationBackup }: Installation, log: Log): void {
  if (migrationBackup === null) return;
  log.info({ migrationBackup }, "the store was brought to this version; a backup was taken before");
}

/** A fresh one at each start, so that one that was lost or leaked is of no use; told to whoever can read the server's log. */
async function linkForFirstStart({ users, admin }: Installation, log: Log): Promise<string | null> {
  if (await users.hasAny()) return null;
  const { url, expiresAt } = await admin.setUpLink("server");
  log.info({ expiresAt }, `nobody is here yet; make the first administrator's account at ${url}`);
  return url;
}

/** On the handle for long work, so that nobody waits for them. */
function retentions(
  { config, installation, ports: { clock } }: Context,
  { chatRemoval: removal }: Pick<Services, "chatRemoval">,
): Retention[] {
  const { longReads } = installation;
  const { nodeEventDays, auditDays, usageDays: days, usageSumsDays: sumsDays, chatDays } = config.retention;
  return [
    sessionRetention(new SessionStore(longReads), clock),
    signInRetention(new OAuthStore(longReads), clock),
    auditRetention({ events: new AuditStore(longReads), days: auditDays, clock }),
    nodeEventRetention({ events: nodeStores(longReads).events, days: nodeEventDays, clock }),
    agentEventRetention({ events: agentStores(longReads).events, days: nodeEventDays, clock }),
    idempotencyRetention(new IdempotencyStore(longReads), clock),
    answerRetention(new AnswerStore(longReads), clock),
    oneTimeLinkRetention(new OneTimeLinkStore(longReads), clock),
    ...usageRetentions({ usage: new UsageStore(longReads), days, sumsDays, clock }),
    ...chatRetentions({ removal, days: chatDays, clock }),
  ];
}

/** Before the store is touched: a taken port must not cost a migration, and the services need the URLs. */
async function findAddresses({ server }: Config): Promise<Addresses> {
  const platform = { ...server.platform, setting: "server.platform.port" };
  const inference = { ...server.inference, setting: "server.inference.port" };
  const first = await reservePort(platform);
  try {
    const second = await reservePort(inference);
    await second.release();
    const scheme = server.tls === undefined ? "http" : "https";
    const platformUrl = urlOf(platform.host, first.port, scheme);
    const inferenceUrl = urlOf(inference.host, second.port, scheme);
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

async function openTraces({ config, log, ports }: Context): Promise<OtlpTraces | null> {
  const { otlpEndpoint: endpoint } = config.telemetry;
  return endpoint === undefined ? null : await openOtlpTraces({ ...ports, endpoint, log });
}

function createInference(
  { config, log, ports }: Context,
  services: Services,
  traces: OtlpTraces | null,
): InferenceHost {
  const { answers, billing, models, callLimiter: limiter, usageRecorder } = services;
  const callers = callersOf(services);
  const platformUpstreams = new Set(config.providers.platform.map(({ name }) => name));
  const { maxRetryWaitSeconds, ...settings } = config.inference;
  const limits = { ...settings, maxRetryWaitMs: maxRetryWaitSeconds * 1000 };
  return createInferenceHost({
    ...ports,
    callers,
    models,
    limiter,
    billing,
    answers,
    log,
    limits,
    platformUpstreams,
    traces: traces ?? undefined,
    random: Math.random,
    onEnded: (end) => usageRecorder.record(end),
  });
}
