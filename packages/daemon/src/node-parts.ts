import { join } from "node:path";
import { systemClock } from "@fairlead/protocol/clock";
import { LOGS_WORKLOAD } from "@fairlead/protocol/daemon-link";
import { systemIds } from "@fairlead/protocol/ids";
import type { DesiredState } from "@fairlead/protocol/workload";
import type { Logger } from "pino";
import type { DaemonConfig } from "./config.ts";
import { ConnectCheck } from "./gateway/connect-check.ts";
import { ConnectFiles, connectCall } from "./gateway/connect-files.ts";
import { createGateway } from "./gateway/gateway.ts";
import { createLogServer } from "./gateway/log-server.ts";
import { PlatformKeys, platformKeysSchema } from "./gateway/platform-keys.ts";
import type { StaticFacts } from "./host/host-facts.ts";
import { LocalPorts } from "./host/local-ports.ts";
import { type Machine, startMachine } from "./host/machine.ts";
import type { Notify, Watchdog } from "./host/systemd.ts";
import { nodeHttpClient } from "./link/http-client.ts";
import type { IdentityTokens } from "./link/identity.ts";
import type { ServerClock } from "./link/server-clock.ts";
import { reasonOf } from "./log.ts";
import { createEngineProbe } from "./reconcile/engine-facts.ts";
import { HealthMonitor } from "./reconcile/health.ts";
import { InFlight } from "./reconcile/in-flight.ts";
import { ReconcileLoop, type Snapshot } from "./reconcile/loop.ts";
import { findPrinting, findServing } from "./reconcile/serving.ts";
import { takeDown } from "./reconcile/take-down.ts";
import { EventQueue } from "./report/event-queue.ts";
import { readyCall } from "./report/ready-call.ts";
import { Reporter } from "./report/reporter.ts";
import { buildReports, leavingAgentIds } from "./report/workload-report.ts";
import type { ContainerRuntime } from "./runtime/container-runtime.ts";
import type { DockerRuntime } from "./runtime/docker-runtime.ts";
import { NodeSecrets } from "./secrets/node-secrets.ts";
import { SecretFolders } from "./secrets/secret-folders.ts";
import { SecretVault } from "./secrets/secret-vault.ts";
import { WorkloadTokens } from "./secrets/workload-tokens.ts";
import { DesiredStore } from "./state/desired-store.ts";
import { DurableRecord } from "./state/durable-record.ts";
import { diskFiles } from "./state/files.ts";
import type { EnrolledIdentity, IdentityStore } from "./state/identity-store.ts";
import { systemTimers } from "./timers.ts";
import type { TunnelHandler } from "./tunnel/tunnel-call.ts";
import { createUpdater } from "./update/create-updater.ts";
import type { UpdatesAtStart } from "./update/open-updates.ts";
import type { Updater } from "./update/updater.ts";

/** The parts of one node that work without the control plane, built and joined. */

const clock = systemClock;
const timers = systemTimers;
const random = Math.random;
const http = nodeHttpClient;
const PORTS = { clock, timers, random } as const;
const SAVE_RETRY_MS = 30_000;

export interface DaemonBase {
  readonly config: DaemonConfig;
  readonly watchdog: Watchdog;
  /** Tells systemd. */
  readonly notify: Notify;
  readonly log: Logger;
  /** Aborts when the daemon shall end. */
  readonly signal: AbortSignal;
  readonly facts: StaticFacts;
  readonly runtime: DockerRuntime;
  readonly serverClock: ServerClock;
  readonly store: IdentityStore;
  readonly updates: UpdatesAtStart;
}

export interface NodeParts {
  readonly desired: DesiredStore;
  readonly secrets: NodeSecrets;
  readonly workloadTokens: WorkloadTokens;
  readonly events: EventQueue;
  readonly reporter: Reporter;
  readonly updater: Updater;
  readonly handler: TunnelHandler;
  readonly onDesired: (state: DesiredState) => void;
  /** The control plane has answered hello, or is gone. */
  readonly linkChanged: (isLive: boolean) => void;
  /** The node was deleted. @returns whether all that it ran is gone. */
  takeDown(signal: AbortSignal): Promise<boolean>;
  close(): Promise<void>;
}

/** Everything that works without the control plane. */
export async function startWorkloads(
  base: DaemonBase,
  identity: EnrolledIdentity,
  tokens: IdentityTokens,
): Promise<NodeParts> {
  const { config, log } = base;
  const { nodeId, platformUrl } = identity;
  const desired = new DesiredStore(diskFiles, { folder: config.stateDir, nodeId });
  const { damaged } = await desired.load();
  if (damaged) log.error("a copy of the desired state on disk was damaged");
  const connect = await openConnectCheck(base, identity);
  const inFlight = new InFlight();
  const ids = systemIds(() => clock.now());
  const events = new EventQueue({ clock, platformTime: () => base.serverClock.now(), timers, ids, random, log });
  const callReady = readyCall({ platformUrl, http, tokens });
  const { operatingSystem } = base.facts;
  const reporter = new Reporter({ nodeId, operatingSystem, callReady, timers, random, log });
  let linkIsLive = false;
  const updater = createUpdater({
    ...base,
    ...PORTS,
    platformUrl,
    isBusy: () => inFlight.isBusy,
    linkIsLive: () => linkIsLive,
    engineAnswers: () => running.snapshot()?.away === null,
    onEvent: events.push,
    onChange: () => running.updateChanged(),
  });
  const running = await startReconcile(base, identity, { desired, inFlight, events, reporter, updater });
  updater.start();
  const { secrets, snapshot } = running;
  const given = giveContainers(base, { platformUrl, nodeId, tokens, secrets, held: desired.current() });
  const onDesired = desiredStateTaker({ desired, followers: [secrets, ...given.followers, running.loop], log });
  return {
    desired,
    secrets,
    workloadTokens: given.workloadTokens,
    events,
    reporter,
    updater,
    handler: tunnelHandler({ snapshot, inFlight, connect, runtime: base.runtime, log }),
    onDesired,
    linkChanged: (isLive) => {
      linkIsLive = isLive;
      if (isLive) updater.linked();
    },
    takeDown: async (signal) => {
      const current = desired.current();
      return current === null || takeDown({ desired: current, accept: onDesired, snapshot, timers, signal });
    },
    close: async () => {
      updater.close();
      await Promise.all([running.close(), reporter.close(), given.close()]);
    },
  };
}

type Follower = { desiredChanged(state: DesiredState): void };

interface Given {
  readonly followers: readonly Follower[];
  readonly workloadTokens: WorkloadTokens;
  close(): Promise<void>;
}

/** What containers find beside their secrets: the way to the engine from outside, tokens of their own, and this machine's local ports. */
function giveContainers(
  { runtime, log }: DaemonBase,
  parts: Pick<EnrolledIdentity, "platformUrl" | "nodeId"> & {
    readonly tokens: IdentityTokens;
    readonly secrets: NodeSecrets;
    readonly held: DesiredState | null;
  },
): Given {
  const { platformUrl, nodeId, tokens, secrets: files, held } = parts;
  const ask = connectCall({ platformUrl, nodeId, http, tokens });
  const connectFiles = new ConnectFiles({ ask, files, timers, random, log });
  const workloadTokens = new WorkloadTokens({ files, timers, random, log });
  const localPorts = new LocalPorts({ runtime, timers, log });
  const followers = [workloadTokens, connectFiles, localPorts];
  if (held !== null) for (const follower of followers) follower.desiredChanged(held);
  return {
    followers,
    workloadTokens,
    close: async () => {
      connectFiles.close();
      workloadTokens.close();
      await localPorts.close();
    },
  };
}

interface Told {
  readonly desired: DesiredStore;
  readonly inFlight: InFlight;
  readonly events: EventQueue;
  readonly reporter: Reporter;
  readonly updater: Updater;
}

interface Reconciling {
  readonly loop: ReconcileLoop;
  readonly secrets: NodeSecrets;
  readonly snapshot: () => Snapshot | null;
  /** What is told of the daemon's update is another. */
  readonly updateChanged: () => void;
  close(): Promise<void>;
}

/** The reconcile loop and what it leans on, set going with the desired state that is there. */
async function startReconcile(base: DaemonBase, identity: EnrolledIdentity, told: Told): Promise<Reconciling> {
  const { log, runtime } = base;
  const { desired, inFlight, events, reporter, updater } = told;
  let snapshot: Snapshot | null = null;
  const report = (): void => {
    if (snapshot === null) return;
    const { epoch, generation } = snapshot.desired;
    const conditions = machine.board.list();
    const workloadReports = buildReports(snapshot, desired.leaving());
    reporter.update({ epoch, generation, workloadReports, conditions, daemonUpdate: updater.progress() });
  };
  const secrets = await openSecrets(base, identity, () => loop.wake());
  const machine = await openMachine(base, { desired, events, secrets, onConditions: report });
  const health = new HealthMonitor({
    probe: createEngineProbe(http),
    clock,
    timers,
    isBusy: (container) => inFlight.count(container.id) > 0,
    onChange: () => loop.wake(),
  });
  const loop = new ReconcileLoop({
    runtime,
    owner: { installationId: identity.enrolled.installationId, nodeId: identity.nodeId },
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
      if (next.observed !== null) {
        desired.seen(leavingAgentIds(next));
        secrets.observed(next.observed.containers);
      }
      machine.board.set("secrets", secrets.finding());
      if (next.observed !== null || next.away !== null) updater.looked(next.away === null ? "answered" : "away");
      report();
    },
  });
  const held = desired.current();
  if (held !== null) secrets.desiredChanged(held);
  loop.start(held);
  base.watchdog.watch(() => loop.getsOn());
  const close = async (): Promise<void> => {
    await Promise.all([loop.close(), machine.close(), secrets.close()]);
    health.close();
  };
  const updateChanged = (): void => {
    machine.board.set("update", updater.finding());
    report();
  };
  updateChanged();
  return { loop, secrets, snapshot: () => snapshot, updateChanged, close };
}

function openMachine(
  { config, log, runtime, serverClock }: DaemonBase,
  parts: Pick<Told, "desired" | "events"> & { readonly secrets: NodeSecrets; readonly onConditions: () => void },
): Promise<Machine> {
  const { desired, events, secrets, onConditions } = parts;
  return startMachine({
    runtime,
    files: diskFiles,
    stateDir: config.stateDir,
    registryAuth: secrets.registryAuth,
    skewMs: () => serverClock.skew(),
    now: () => serverClock.now(),
    desired: () => desired.current(),
    clock,
    timers,
    log,
    onEvent: events.push,
    onConditions,
  });
}

function desiredStateTaker(parts: {
  desired: DesiredStore;
  /** Told of a new one, in this order. */
  followers: readonly Follower[];
  log: Logger;
}): (state: DesiredState) => void {
  const { desired, followers, log } = parts;
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
    for (const follower of followers) follower.desiredChanged(state);
  };
}

async function openSecrets(
  base: DaemonBase,
  { nodeId, keys }: EnrolledIdentity,
  onChange: () => void,
): Promise<NodeSecrets> {
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
  base: DaemonBase,
  { platformUrl, nodeId, enrolled }: EnrolledIdentity,
): Promise<ConnectCheck> {
  const { config, log, serverClock } = base;
  const record = new DurableRecord(diskFiles, join(config.stateDir, "platform-keys.json"), platformKeysSchema);
  const keys = new PlatformKeys({ platformUrl, http, record, clock, timers, log });
  await keys.load();
  return new ConnectCheck({ keys, installationId: enrolled.installationId, nodeId, now: () => serverClock.now() });
}

/** The gateway, with every request counted for the container that answers it, so that an update lets it end; and the logs. */
function tunnelHandler(parts: {
  readonly snapshot: () => Snapshot | null;
  readonly inFlight: InFlight;
  readonly connect: ConnectCheck;
  readonly runtime: ContainerRuntime;
  readonly log: Logger;
}): TunnelHandler {
  const { snapshot, inFlight, connect, runtime, log } = parts;
  const logs = createLogServer({ find: (name) => findPrinting(snapshot(), name), runtime, timers, log });
  const find = (name: string) => {
    const serving = findServing(snapshot(), name);
    return serving && { host: "127.0.0.1", port: serving.port, ready: serving.ready };
  };
  const gateway = createGateway({ targets: { find }, connect, log });
  return (call) => {
    const { workload, token } = call.request;
    // Nobody's token opens them: only the platform itself asks.
    if (workload === LOGS_WORKLOAD && token === undefined) {
      logs(call);
      return;
    }
    const serving = findServing(snapshot(), workload);
    if (serving !== null) call.onceClosed(inFlight.begin(serving.container.id));
    gateway(call);
  };
}
