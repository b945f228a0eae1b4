import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { systemClock } from "@fairlead/protocol/clock";
import { type Heartbeat, PROTOCOL_VERSIONS, TUNNEL_WORKLOAD_HEADER } from "@fairlead/protocol/daemon-link";
import { systemIds } from "@fairlead/protocol/ids";
import type { DesiredState } from "@fairlead/protocol/workload";
import type { Logger } from "pino";
import type { DaemonConfig } from "./config.ts";
import { ConnectCheck } from "./gateway/connect-check.ts";
import { createGateway } from "./gateway/gateway.ts";
import { PlatformKeys, platformKeysSchema } from "./gateway/platform-keys.ts";
import { readHostFacts, readStaticFacts, type StaticFacts } from "./host/host-facts.ts";
import { type Machine, startMachine } from "./host/machine.ts";
import { notifySystemd } from "./host/systemd.ts";
import { enroll } from "./link/enroll.ts";
import { nodeHttpClient } from "./link/http-client.ts";
import { IdentityTokens } from "./link/identity.ts";
import { startLink } from "./link/link-loop.ts";
import { type PreparedIdentity, prepareIdentity } from "./link/prepare-identity.ts";
import { ServerClock } from "./link/server-clock.ts";
import { createTrpcLink } from "./link/trpc-link.ts";
import { reasonOf } from "./log.ts";
import { createEngineProbe } from "./reconcile/engine-facts.ts";
import { HealthMonitor } from "./reconcile/health.ts";
import { InFlight } from "./reconcile/in-flight.ts";
import { ReconcileLoop, type Snapshot } from "./reconcile/loop.ts";
import { findServing } from "./reconcile/serving.ts";
import { takeDown } from "./reconcile/take-down.ts";
import { EventQueue } from "./report/event-queue.ts";
import { readyCall } from "./report/ready-call.ts";
import { Reporter } from "./report/reporter.ts";
import { buildReports } from "./report/workload-report.ts";
import { DockerRuntime } from "./runtime/docker-runtime.ts";
import { NodeSecrets } from "./secrets/node-secrets.ts";
import { SecretFolders } from "./secrets/secret-folders.ts";
import { SecretVault } from "./secrets/secret-vault.ts";
import { EXIT, type ExitCode, StartError } from "./start-error.ts";
import { DesiredStore } from "./state/desired-store.ts";
import { DurableRecord } from "./state/durable-record.ts";
import { diskFiles } from "./state/files.ts";
import { type EnrolledIdentity, IdentityStore, isEnrolled } from "./state/identity-store.ts";
import { lockStateFolder } from "./state/state-lock.ts";
import { systemTimers } from "./timers.ts";
import { startTunnel, type Tunnel } from "./tunnel/tunnel-client.ts";
import type { TunnelHandler } from "./tunnel/tunnel-server.ts";
import { DAEMON_VERSION } from "./version.ts";

/** The composition root: builds every part and joins them. */

const clock = systemClock;
const timers = systemTimers;
const random = Math.random;
const http = nodeHttpClient;
const SAVE_RETRY_MS = 30_000;

interface Base {
  readonly config: DaemonConfig;
  readonly log: Logger;
  /** Aborts when the daemon shall end. */
  readonly signal: AbortSignal;
  readonly facts: StaticFacts;
  readonly runtime: DockerRuntime;
  readonly serverClock: ServerClock;
  readonly store: IdentityStore;
}

/**
 * Runs until the signal aborts or the platform host disowns this node. Workloads stay as they are either way.
 * @throws StartError where the daemon cannot run at all.
 */
export async function runDaemon(
  config: DaemonConfig,
  options: { log: Logger; signal: AbortSignal },
): Promise<ExitCode> {
  await diskFiles.makeFolder(config.stateDir);
  const lock = await lockStateFolder(config.stateDir);
  try {
    const store = new IdentityStore(diskFiles, config.stateDir);
    const token = config.bootstrapTokenFile === null ? null : await readToken(config.bootstrapTokenFile);
    const prepared = await prepareIdentity({ store, stateDir: config.stateDir, token, insecure: config.insecure });
    const base: Base = {
      config,
      ...options,
      facts: await readStaticFacts(),
      runtime: new DockerRuntime(config.dockerSocket),
      serverClock: new ServerClock(clock),
      store,
    };
    // Ready means that this program works, not that the platform host answers: a start must not hang on the network.
    if (config.notifySystemd) notifySystemd();
    options.log.info({ nodeId: prepared.identity.nodeId, version: DAEMON_VERSION }, "the daemon has started");
    return await runNode(base, prepared);
  } finally {
    await lock.release();
  }
}

async function readToken(path: string): Promise<string | null> {
  const text = (await diskFiles.read(path))?.trim();
  return text ? text : null;
}

/** An enrolled node's workloads come first, whether the platform host answers or not. */
async function runNode(base: Base, { identity, enrollWith }: PreparedIdentity): Promise<ExitCode> {
  if (!isEnrolled(identity)) {
    if (enrollWith === null) throw new StartError(EXIT.usage, "this machine is not enrolled");
    const enrolled = await enrollNode(base, { identity, token: enrollWith });
    return runEnrolled(base, enrolled.identity, async (tokens) => tokens.accept(enrolled.answer));
  }
  return runEnrolled(base, identity, async (tokens) => {
    if (enrollWith === null) return;
    // A token that is no good must not end a node that works; if the identity is gone too, that will show.
    await enrollNode(base, { identity, token: enrollWith }).then(
      ({ answer }) => tokens.accept(answer),
      (error: unknown) =>
        base.log.warn({ reason: reasonOf(error) }, "could not enrol anew; going on with the identity that is there"),
    );
  });
}

function enrollNode(
  base: Base,
  { identity, token }: { identity: PreparedIdentity["identity"]; token: string },
): ReturnType<typeof enroll> {
  const { store, serverClock, log, signal } = base;
  const { operatingSystem } = base.facts;
  return enroll({ http, store, serverClock, timers, random, log }, { identity, token, operatingSystem, signal });
}

async function runEnrolled(
  base: Base,
  identity: EnrolledIdentity,
  enrollAnew: (tokens: IdentityTokens) => Promise<void>,
): Promise<ExitCode> {
  const { log, signal, serverClock } = base;
  const tokens = new IdentityTokens({ identity, http, clock, serverClock, newNonce: randomUUID, log });
  const node = await startWorkloads(base, identity, tokens);
  const closing = new AbortController();
  const connections = enrollAnew(tokens).then(() =>
    closing.signal.aborted ? null : connect(base, { identity, tokens, node }),
  );
  const ended = await Promise.race([
    aborted(signal).then(() => EXIT.ok),
    tokens.revoked.then((revoked) => {
      log.error(
        { reason: revoked.message },
        "this node's identity is no longer accepted; enrol it anew with a fresh bootstrap token",
      );
      return revoked.nodeDeleted ? "deleted" : EXIT.refused;
    }),
  ]);
  closing.abort();
  await (await connections)?.close();
  const gone = ended === "deleted" && (await node.takeDown(signal));
  await node.close();
  log.info(
    { ended },
    gone ? "the daemon has ended, and so have its workloads" : "the daemon has ended; its workloads run on",
  );
  return ended === "deleted" ? EXIT.refused : ended;
}

interface NodeParts {
  readonly desired: DesiredStore;
  readonly secrets: NodeSecrets;
  readonly events: EventQueue;
  readonly reporter: Reporter;
  readonly handler: TunnelHandler;
  readonly onDesired: (state: DesiredState) => void;
  /** The node was deleted. @returns whether all that it ran is gone. */
  takeDown(signal: AbortSignal): Promise<boolean>;
  close(): Promise<void>;
}

/** Everything that works without the control plane. */
async function startWorkloads(base: Base, identity: EnrolledIdentity, tokens: IdentityTokens): Promise<NodeParts> {
  const { config, log, runtime } = base;
  const { nodeId, platformUrl } = identity;
  const desired = new DesiredStore(diskFiles, { folder: config.stateDir, nodeId });
  const { damaged } = await desired.load();
  if (damaged) log.error("a copy of the desired state on disk was damaged");
  const connect = await openConnectCheck(base, identity);
  const inFlight = new InFlight();
  const events = new EventQueue({ clock, timers, ids: systemIds(() => clock.now()), random, log });
  const callReady = readyCall({ platformUrl, http, tokens });
  const { operatingSystem } = base.facts;
  const reporter = new Reporter({ nodeId, operatingSystem, callReady, timers, random, log });
  const health = new HealthMonitor({
    probe: createEngineProbe(http),
    clock,
    timers,
    isBusy: (container) => inFlight.count(container.id) > 0,
    onChange: () => loop.wake(),
  });
  const secrets = await openSecrets(base, identity, () => loop.wake());
  let snapshot: Snapshot | null = null;
  const report = (): void => {
    if (snapshot === null) return;
    const { epoch, generation } = snapshot.desired;
    const conditions = machine.board.list();
    reporter.update({ epoch, generation, workloadReports: buildReports(snapshot), conditions });
  };
  const machine: Machine = await startMachine({
    runtime,
    files: diskFiles,
    stateDir: config.stateDir,
    registryAuth: secrets.registryAuth,
    skewMs: () => base.serverClock.skew(),
    now: () => base.serverClock.now(),
    desired: () => desired.current(),
    clock,
    timers,
    log,
    onEvent: events.push,
    onConditions: () => report(),
  });
  const loop = new ReconcileLoop({
    runtime,
    owner: { installationId: identity.enrolled.installationId, nodeId },
    health,
    inFlight: (container) => inFlight.count(container.id),
    pulls: machine.pulls,
    secrets,
    clock,
    timers,
    log,
    onEvent: events.push,
    onSnapshot: (next) => {
      snapshot = next;
      machine.observed(next);
      if (next.observed !== null) secrets.observed(next.observed.containers);
      machine.board.set("secrets", secrets.finding());
      report();
    },
  });
  const onDesired = desiredStateTaker({ desired, secrets, loop, log });
  const held = desired.current();
  if (held !== null) secrets.desiredChanged(held);
  loop.start(held);
  return {
    desired,
    secrets,
    events,
    reporter,
    handler: gatewayHandler({ snapshot: () => snapshot, inFlight, connect, log }),
    onDesired,
    takeDown: async (signal) => {
      const current = desired.current();
      const parts = { accept: onDesired, snapshot: () => snapshot, timers, signal };
      return current === null || takeDown({ desired: current, ...parts });
    },
    close: async () => {
      await Promise.all([loop.close(), reporter.close(), machine.close(), secrets.close()]);
      health.close();
    },
  };
}

function desiredStateTaker(parts: {
  desired: DesiredStore;
  secrets: NodeSecrets;
  loop: ReconcileLoop;
  log: Logger;
}): (state: DesiredState) => void {
  const { desired, secrets, loop, log } = parts;
  let saving = Promise.resolve();
  const save = (): void => {
    saving = saving
      .then(() => desired.save())
      .catch((error: unknown) => {
        log.error(
          { reason: reasonOf(error) },
          "the desired state could not be saved; it holds, but not through a restart",
        );
        setTimeout(save, SAVE_RETRY_MS).unref();
      });
  };
  return (state) => {
    const { epoch, generation } = state;
    const acceptance = desired.offer(state);
    if (acceptance === "unchanged") return;
    log.info({ epoch, generation, acceptance }, "a desired state came");
    if (acceptance !== "accepted") return;
    save();
    secrets.desiredChanged(state);
    loop.desiredChanged(state);
  };
}

async function openSecrets(base: Base, { nodeId, keys }: EnrolledIdentity, onChange: () => void): Promise<NodeSecrets> {
  const { config, log, runtime } = base;
  const vault = new SecretVault({ files: diskFiles, folder: config.stateDir, nodeId, keys });
  const { damaged } = await vault.load();
  if (damaged) log.warn("secrets on disk cannot be opened by this node; they are fetched again");
  // Named by the node: daemons of several nodes may share a machine.
  const folders = new SecretFolders(join(config.runtimeDir, "secrets", nodeId));
  return new NodeSecrets({ vault, folders, runtime, timers, random, log, onChange });
}

/** Judges workload-connect tokens without the platform host, as long as its keys are those on disk. */
async function openConnectCheck(
  base: Base,
  { platformUrl, nodeId, enrolled }: EnrolledIdentity,
): Promise<ConnectCheck> {
  const { config, log, serverClock } = base;
  const record = new DurableRecord(diskFiles, join(config.stateDir, "platform-keys.json"), platformKeysSchema);
  const keys = new PlatformKeys({ platformUrl, http, record, clock, timers, log });
  await keys.load();
  return new ConnectCheck({ keys, installationId: enrolled.installationId, nodeId, now: () => serverClock.now() });
}

/** The gateway, with every request counted for the container that answers it, so that an update lets it end. */
function gatewayHandler(parts: {
  readonly snapshot: () => Snapshot | null;
  readonly inFlight: InFlight;
  readonly connect: ConnectCheck;
  readonly log: Logger;
}): TunnelHandler {
  const { snapshot, inFlight, connect, log } = parts;
  const find = (name: string) => {
    const serving = findServing(snapshot(), name);
    return serving && { host: "127.0.0.1", port: serving.port, ready: serving.ready };
  };
  const gateway = createGateway({ targets: { find }, connect, log });
  return (stream, headers) => {
    const name = headers[TUNNEL_WORKLOAD_HEADER];
    const serving = typeof name === "string" ? findServing(snapshot(), name) : null;
    if (serving !== null) stream.once("close", inFlight.begin(serving.container.id));
    gateway(stream, headers);
  };
}

interface ConnectParts {
  readonly identity: EnrolledIdentity;
  readonly tokens: IdentityTokens;
  readonly node: NodeParts;
}

/** The daemon link and the tunnel; each keeps itself up. */
function connect(base: Base, { identity, tokens, node }: ConnectParts): { close(): Promise<void> } {
  const { log, serverClock } = base;
  const { nodeId, platformUrl } = identity;
  const token = (): Promise<string> => tokens.token();
  const bootId = randomUUID();
  const held = (): Heartbeat => {
    const current = node.desired.current();
    return { epoch: current?.epoch ?? "", generation: current?.generation ?? 0 };
  };
  const link = startLink({
    control: createTrpcLink({
      platformUrl,
      nodeId,
      token,
      onTokenRefused: (refused) => tokens.invalidate(refused),
      log,
    }),
    serverClock,
    timers,
    random,
    log,
    hello: async () => ({
      protocolVersions: [...PROTOCOL_VERSIONS],
      daemonVersion: DAEMON_VERSION,
      bootId,
      host: await readHostFacts(base.facts, base.runtime),
    }),
    held,
    onState: node.onDesired,
    onLive: (connection) => {
      node.reporter.attach(connection);
      node.events.attach(connection);
      node.secrets.attach(connection);
    },
    onDown: () => {
      node.reporter.detach();
      node.events.detach();
      node.secrets.detach();
    },
  });
  const tunnel: Tunnel = startTunnel({ platformUrl, nodeId, token, handler: node.handler, clock, random, log });
  return {
    close: async () => {
      await Promise.all([link.close(), tunnel.close()]);
    },
  };
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
