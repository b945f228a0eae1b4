import { join } from "node:path";
import { LOGS_WORKLOAD } from "@fairlead/protocol/daemon-link";
import { systemClock } from "@fairlead/protocol/values/clock";
import { systemIds } from "@fairlead/protocol/values/ids";
import type { DesiredState } from "@fairlead/protocol/workload";
import type { Logger } from "pino";
import { ConnectCheck } from "./gateway/connect-check.ts";
import { ConnectFiles, connectCall } from "./gateway/connect-files.ts";
import { createGateway } from "./gateway/gateway.ts";
import { createLogServer } from "./gateway/log-server.ts";
import { PlatformKeys, platformKeysSchema } from "./gateway/platform-keys.ts";
import type { StaticFacts } from "./host/host-facts.ts";
import { type HostMachine, startMachine } from "./host/machine.ts";
import type { Notify, Watchdog } from "./host/systemd.ts";
import { openWorkloadNetworks, type WorkloadNetworks, type WorkloadNetworksDeps } from "./host/workload-networks.ts";
import type { HttpClient } from "./link/http-client.ts";
import type { IdentityTokens } from "./link/identity.ts";
import type { ServerClock } from "./link/server-clock.ts";
import type { DaemonConfig } from "./process/config.ts";
import { reasonOf } from "./process/log.ts";
import { systemTimers } from "./process/timers.ts";
import { createEngineProbe } from "./reconcile/engine-facts.ts";
import { type HealthDeps, HealthMonitor } from "./reconcile/health.ts";
import { InFlight } from "./reconcile/in-flight.ts";
import { type LoopSnapshot, ReconcileLoop } from "./reconcile/loop.ts";
import { findPrinting, findServing } from "./reconcile/serving.ts";
import { takeDown } from "./reconcile/take-down.ts";
import { EventQueue } from "./report/event-queue.ts";
import { readyCall } from "./report/ready-call.ts";
import { Reporter } from "./report/reporter.ts";
import { buildReports, leavingAgentIds } from "./report/workload-report.ts";
import type { Container, ContainerRuntime, Owner } from "./runtime/container-runtime.ts";
import type { DockerRuntime } from "./runtime/docker/docker-runtime.ts";
import { LeftSecrets } from "./secrets/left-secrets.ts";
import { NodeSecrets } from "./secrets/node-secrets.ts";
import { SecretFolders } from "./secrets/secret-folders.ts";
import { SecretVault } from "./secrets/secret-vault.ts";
import { WorkloadTokens } from "./secrets/workload-tokens.ts";
import { DesiredStore } from "./state/desired-store.ts";
import { DurableRecord, restoredWords } from "./state/durable-record.ts";
import { diskFiles } from "./state/files.ts";
import type { EnrolledIdentity, IdentityStore } from "./state/identity-store.ts";
import type { IncomingCallHandler } from "./tunnel/tunnel-call.ts";
import { createUpdater } from "./update/create-updater.ts";
import type { UpdatesAtStart } from "./update/open-updates.ts";
import type { Updater } from "./update/updater.ts";

/** Builds the parts of a node that work without the control plane. */

const clock = systemClock;
const timers = systemTimers;
const random = Math.random;
const PORTS = { clock, timers, random } as const;
const SAVE_RETRY_MS = 30_000;

export interface DaemonBase {
  readonly config: DaemonConfig;
  readonly http: HttpClient;
  readonly watchdog: Watchdog;
  /** Notifies systemd. */
  readonly notify: Notify;
  readonly log: Logger;
  /** Aborts when the daemon must stop. */
  readonly signal: AbortSignal;
  readonly facts: StaticFacts;
  readonly runtime: DockerRuntime;
  readonly serverClock: ServerClock;
  readonly store: IdentityStore;
  /** Identity files that were restored at startup. */
  readonly restored: readonly string[];
  readonly updates: UpdatesAtStart;
}

export interface NodeParts {
  readonly desired: DesiredStore;
  readonly secrets: NodeSecrets;
  readonly workloadTokens: WorkloadTokens;
  readonly events: EventQueue;
  readonly reporter: Reporter;
  readonly updater: Updater;
  readonly handler: IncomingCallHandler;
  readonly onDesired: (state: DesiredState) => void;
  /** The link was established or lost. */
  readonly linkChanged: (isLive: boolean) => void;
  /** The node was deleted. @returns whether all its workloads were removed. */
  takeDown(signal: AbortSignal): Promise<boolean>;
  close(): Promise<void>;
}

/** Creates everything that works without the control plane. */
export async function startWorkloads(
  base: DaemonBase,
  identity: EnrolledIdentity,
  tokens: IdentityTokens,
): Promise<NodeParts> {
  const { config, http, log } = base;
  const { nodeId, platformUrl } = identity;
  const desired = new DesiredStore(diskFiles, { folder: config.stateDir, nodeId });
  const { damaged, restored } = await desired.recover();
  if (damaged) log.error({ restored }, "a copy of the desired state on disk is damaged");
  const connect = await openConnectCheck(base, identity);
  const inFlight = new InFlight();
  const ids = systemIds(() => clock.now());
  const events = new EventQueue({ clock, platformTime: () => base.serverClock.now(), timers, ids, random, log });
  tellRestored(events, [base.restored, restored]);
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
  const { secrets, networks, snapshot } = running;
  const given = giveContainers(base, { platformUrl, nodeId, tokens, secrets, held: desired.current() });
  const followers = [secrets, networks, ...given.followers, running.loop];
  const onDesired = desiredStateTaker({ desired, followers, log });
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
      return current === null || takeDown({ desired: current, accept: onDesired, snapshot, networks, timers, signal });
    },
    close: async () => {
      updater.close();
      given.close();
      await Promise.all([running.close(), reporter.close()]);
    },
  };
}

type Follower = { desiredChanged(state: DesiredState): void };

interface Given {
  readonly followers: readonly Follower[];
  readonly workloadTokens: WorkloadTokens;
  close(): void;
}

/** Files that the daemon adds to the containers' secrets: the engine's external URL and workload tokens. */
function giveContainers(
  { http, log }: DaemonBase,
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
  const followers = [workloadTokens, connectFiles];
  if (held !== null) for (const follower of followers) follower.desiredChanged(held);
  return {
    followers,
    workloadTokens,
    close: () => {
      connectFiles.close();
      workloadTokens.close();
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
  readonly networks: WorkloadNetworks;
  readonly snapshot: () => LoopSnapshot | null;
  /** The status of the daemon's update changed. */
  readonly updateChanged: () => void;
  close(): Promise<void>;
}

/** Starts the reconcile loop and its dependencies with the saved desired state. */
async function startReconcile(base: DaemonBase, identity: EnrolledIdentity, told: Told): Promise<Reconciling> {
  const { log, runtime } = base;
  const { desired, inFlight, events, reporter, updater } = told;
  let snapshot: LoopSnapshot | null = null;
  const report = (): void => {
    if (snapshot === null) return;
    const { epoch, generation } = snapshot.desired;
    const conditions = machine.board.list();
    const workloadReports = buildReports(snapshot, desired.leaving());
    reporter.update({ epoch, generation, workloadReports, conditions, daemonUpdate: updater.progress() });
  };
  const secrets = await openSecrets(base, identity, () => loop.wake());
  const machine = await openMachine(base, { desired, events, secrets, onConditions: report });
  const owner = { installationId: identity.enrolled.installationId, nodeId: identity.nodeId };
  const networks = openNetworks(base, owner, (type, finding) => machine.board.set(type, finding));
  const health = watchHealth(base, inFlight, () => loop.wake());
  const loop = new ReconcileLoop({
    runtime,
    owner,
    health,
    inFlight: (container) => inFlight.count(container.id),
    pulls: machine.pulls,
    networkRules: networks.rules,
    secrets,
    clock,
    timers,
    log,
    onEvent: events.push,
    onSnapshot: (next) => {
      snapshot = next;
      machine.observed(next);
      networks.observed(next);
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
  if (held !== null) for (const follower of [secrets, networks]) follower.desiredChanged(held);
  loop.start(held);
  base.watchdog.watch(() => loop.getsOn());
  const close = async (): Promise<void> => {
    await Promise.all([loop.close(), machine.close(), secrets.close(), networks.close()]);
    health.close();
  };
  const updateChanged = (): void => {
    machine.board.set("update", updater.finding());
    report();
  };
  updateChanged();
  return { loop, secrets, networks, snapshot: () => snapshot, updateChanged, close };
}

function tellRestored(events: EventQueue, lists: readonly (readonly string[])[]): void {
  for (const names of lists) if (names.length > 0) events.push("state_restored", null, restoredWords(names));
}

function openNetworks(
  { config, runtime, log }: DaemonBase,
  owner: Owner,
  onFinding: WorkloadNetworksDeps["onFinding"],
): WorkloadNetworks {
  const { workloadSubnets, proxies } = config;
  return openWorkloadNetworks({ owner, workloadSubnets, runtime, proxies, timers, log, onFinding });
}

function watchHealth({ http, runtime }: DaemonBase, inFlight: InFlight, onChange: () => void): HealthMonitor {
  const isBusy = ({ id }: Container): boolean => inFlight.count(id) > 0;
  const processes: HealthDeps["processes"] = ({ id }) => runtime.processes(id);
  return new HealthMonitor({ probe: createEngineProbe(http), clock, timers, isBusy, processes, onChange });
}

function openMachine(
  { config, log, runtime, serverClock }: DaemonBase,
  parts: Pick<Told, "desired" | "events"> & { readonly secrets: NodeSecrets; readonly onConditions: () => void },
): Promise<HostMachine> {
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
  /** Notified of a new desired state, in this order. */
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
          "could not save the desired state; it applies until the daemon restarts",
        );
        setTimeout(save, SAVE_RETRY_MS).unref();
      });
  };
  return (state) => {
    const { epoch, generation } = state;
    const acceptance = desired.offer(state);
    if (acceptance === "unchanged") return;
    log.info({ epoch, generation, acceptance }, "received a desired state");
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
  if (damaged) log.warn("cannot decrypt secrets on disk; fetching them again");
  // Per node, because several daemons may share a machine.
  const root = join(config.runtimeDir, "secrets");
  const folders = new SecretFolders(join(root, nodeId));
  const left = new LeftSecrets({ root, nodeId, runtime, clock });
  return new NodeSecrets({ vault, folders, left, runtime, timers, random, log, onChange });
}

/** Checks workload-connect tokens without the platform host, using its keys on disk. */
async function openConnectCheck(
  base: DaemonBase,
  { platformUrl, nodeId, enrolled }: EnrolledIdentity,
): Promise<ConnectCheck> {
  const { config, http, log, serverClock } = base;
  const record = new DurableRecord(diskFiles, join(config.stateDir, "platform-keys.json"), platformKeysSchema);
  const keys = new PlatformKeys({ platformUrl, http, record, clock, timers, log });
  await keys.load();
  return new ConnectCheck({ keys, installationId: enrolled.installationId, nodeId, now: () => serverClock.now() });
}

/** The gateway and the logs. Requests are counted per container, so that updates can wait for them. */
function tunnelHandler(parts: {
  readonly snapshot: () => LoopSnapshot | null;
  readonly inFlight: InFlight;
  readonly connect: ConnectCheck;
  readonly runtime: ContainerRuntime;
  readonly log: Logger;
}): IncomingCallHandler {
  const { snapshot, inFlight, connect, runtime, log } = parts;
  const logs = createLogServer({ find: (name) => findPrinting(snapshot(), name), runtime, timers, log });
  const find = (name: string) => {
    const serving = findServing(snapshot(), name);
    return serving && { host: "127.0.0.1", port: serving.port, ready: serving.ready };
  };
  const gateway = createGateway({ targets: { find }, connect, log });
  return (call) => {
    const { workload, token } = call.request;
    // No token grants access; only the platform itself may read logs.
    if (workload === LOGS_WORKLOAD && token === undefined) {
      logs(call);
      return;
    }
    const serving = findServing(snapshot(), workload);
    if (serving !== null) call.onceClosed(inFlight.begin(serving.container.id));
    gateway(call);
  };
}
