import { randomUUID } from "node:crypto";
import { fileURLToPath } from "node:url";
import { type Heartbeat, PROTOCOL_VERSIONS } from "@fairlead/protocol/daemon-link";
import { rfc3339, systemClock } from "@fairlead/protocol/values/clock";
import type { Logger } from "pino";
import { readHostFacts, readStaticFacts } from "./host/host-facts.ts";
import { notifier, Watchdog } from "./host/systemd.ts";
import { enroll } from "./link/enroll.ts";
import { createHttpClient } from "./link/http-client.ts";
import { IdentityTokens } from "./link/identity.ts";
import { startLink } from "./link/link-loop.ts";
import { type PreparedIdentity, prepareIdentity } from "./link/prepare-identity.ts";
import { ServerClock } from "./link/server-clock.ts";
import { createTrpcLink } from "./link/trpc-link.ts";
import { trustFile } from "./link/trust-file.ts";
import { type DaemonBase, type NodeParts, startWorkloads } from "./node-parts.ts";
import type { DaemonConfig } from "./process/config.ts";
import { reasonOf } from "./process/log.ts";
import { DaemonStartError, EXIT, type ExitCode } from "./process/start-error.ts";
import { systemTimers } from "./process/timers.ts";
import { DAEMON_VERSION } from "./process/version.ts";
import { DockerRuntime } from "./runtime/docker/docker-runtime.ts";
import { restoredWords } from "./state/durable-record.ts";
import { diskFiles } from "./state/files.ts";
import { type EnrolledIdentity, IdentityStore, isEnrolled } from "./state/identity-store.ts";
import { lockStateFolder } from "./state/state-lock.ts";
import { startTunnel, type Tunnel } from "./tunnel/tunnel-client.ts";
import { diskFolders } from "./update/folder-layer.ts";
import { installedAs } from "./update/install-layout.ts";
import { openUpdates, type UpdatesAtStart } from "./update/open-updates.ts";

/** The composition root. */

const clock = systemClock;
const timers = systemTimers;
const random = Math.random;
const program = fileURLToPath(import.meta.url);

/**
 * Runs until the signal aborts or the platform revokes this node's identity. Workloads keep running unless the node was deleted.
 * @throws StartError if the daemon cannot run.
 */
export async function runDaemon(
  config: DaemonConfig,
  options: { log: Logger; signal: AbortSignal },
): Promise<ExitCode> {
  await diskFiles.makeFolder(config.stateDir);
  const lock = await lockStateFolder(config.stateDir);
  const manager = config.serviceManager;
  const notify = notifier(manager);
  const watchdog = new Watchdog({ manager, notify, timers });
  watchdog.start();
  options.signal.addEventListener("abort", () => notify("STOPPING=1"), { once: true });
  try {
    // First, because a version on trial may crash anywhere.
    const updates = await openOwnUpdates(config, options.log);
    const onTrial = updates.start.kind === "on-trial";
    const parts = { config, watchdog, notify, updates, ...options };
    return await untilProven(onTrial, () => runOnce(parts));
  } finally {
    watchdog.close();
    await lock.release();
  }
}

type OwnParts = Pick<DaemonBase, "config" | "watchdog" | "notify" | "updates" | "log" | "signal">;

async function runOnce(parts: OwnParts): Promise<ExitCode> {
  const { config, notify, log } = parts;
  trustFile(config.caFile);
  const store = new IdentityStore(diskFiles, config.stateDir);
  const token = config.bootstrapTokenFile === null ? null : await readToken(config.bootstrapTokenFile);
  const prepared = await prepareIdentity({ store, stateDir: config.stateDir, token, insecure: config.insecure });
  if (prepared.restored.length > 0) log.error(restoredWords(prepared.restored));
  const base: DaemonBase = {
    ...parts,
    http: createHttpClient(config.proxies),
    facts: await readStaticFacts(),
    runtime: new DockerRuntime(config.dockerSocket, config.workloadSubnets),
    serverClock: new ServerClock(clock),
    store,
    restored: prepared.restored,
  };
  // Ready means that this program works. A start must not depend on the network.
  notify("READY=1");
  const proxy = config.proxies.find(new URL(prepared.identity.platformUrl))?.url;
  log.info({ nodeId: prepared.identity.nodeId, version: DAEMON_VERSION, proxy }, "daemon started");
  return runNode(base, prepared);
}

function openOwnUpdates({ stateDir }: DaemonConfig, log: Logger): Promise<UpdatesAtStart> {
  const now = rfc3339(clock.now());
  return openUpdates({ files: diskFiles, folders: diskFolders, stateDir, installed: installedAs(program), now, log });
}

/** A version on trial is restarted instead of exiting, and eventually rolled back. */
async function untilProven(onTrial: boolean, run: () => Promise<ExitCode>): Promise<ExitCode> {
  if (!onTrial) return run();
  try {
    const code = await run();
    return code === EXIT.refused ? EXIT.fault : code;
  } catch (error) {
    throw error instanceof DaemonStartError ? new DaemonStartError(EXIT.fault, error.message, { cause: error }) : error;
  }
}

async function readToken(path: string): Promise<string | null> {
  const text = (await diskFiles.read(path))?.trim();
  return text ? text : null;
}

/** Workloads of an enrolled node start first, whether or not the platform responds. */
async function runNode(
  base: DaemonBase,
  { identity, enrollWith }: Omit<PreparedIdentity, "restored">,
): Promise<ExitCode> {
  if (!isEnrolled(identity)) {
    if (enrollWith === null) throw new DaemonStartError(EXIT.usage, "this machine is not enrolled");
    const enrolled = await enrollNode(base, { identity, token: enrollWith });
    return runEnrolled(base, enrolled.identity, async (tokens) => tokens.accept(enrolled.answer));
  }
  return runEnrolled(base, identity, async (tokens) => {
    if (enrollWith === null) return;
    // A bad token must not stop a working node. If its identity is revoked too, the link will find out.
    await enrollNode(base, { identity, token: enrollWith }).then(
      ({ answer }) => tokens.accept(answer),
      (error: unknown) =>
        base.log.warn({ reason: reasonOf(error) }, "could not re-enrol; keeping the existing identity"),
    );
  });
}

function enrollNode(
  base: DaemonBase,
  { identity, token }: { identity: PreparedIdentity["identity"]; token: string },
): ReturnType<typeof enroll> {
  const { http, store, serverClock, log, signal } = base;
  const { operatingSystem } = base.facts;
  return enroll({ http, store, serverClock, timers, random, log }, { identity, token, operatingSystem, signal });
}

async function runEnrolled(
  base: DaemonBase,
  identity: EnrolledIdentity,
  enrollAnew: (tokens: IdentityTokens) => Promise<void>,
): Promise<ExitCode> {
  const { http, log, signal, serverClock } = base;
  const tokens = new IdentityTokens({ identity, http, clock, serverClock, newNonce: randomUUID, log });
  const node = await startWorkloads(base, identity, tokens);
  const closing = new AbortController();
  const connections = enrollAnew(tokens).then(() =>
    closing.signal.aborted ? null : connect(base, { identity, tokens, node }),
  );
  const ended = await Promise.race([
    aborted(signal).then(() => EXIT.ok),
    node.updater.handedOver.then(() => EXIT.updated),
    tokens.revoked.then((revoked) => {
      log.error(
        { reason: revoked.message },
        "this node's identity is no longer accepted; re-enrol it with a new bootstrap token",
      );
      return revoked.nodeDeleted ? "deleted" : EXIT.refused;
    }),
  ]);
  closing.abort();
  // Enrolment retries until the platform responds; an update does not wait for that.
  const open = ended === EXIT.updated ? Promise.race([connections, Promise.resolve(null)]) : connections;
  const opened = await open;
  // The new version starts within seconds, so the platform is not notified.
  if (ended === EXIT.ok) await opened?.goodbye();
  await opened?.close();
  // Only a version that passed its trial may do this.
  const gone = ended === "deleted" && !node.updater.isOnTrial && (await node.takeDown(signal));
  await node.close();
  log.info(
    { ended },
    gone ? "daemon stopped; its workloads were removed" : "daemon stopped; its workloads keep running",
  );
  return ended === "deleted" ? EXIT.refused : ended;
}

interface ConnectParts {
  readonly identity: EnrolledIdentity;
  readonly tokens: IdentityTokens;
  readonly node: NodeParts;
}

interface Connections {
  /** Sent to the platform before a stop. */
  goodbye(): Promise<void>;
  close(): Promise<void>;
}

/** The daemon link and the tunnel; both reconnect on their own. */
function connect(base: DaemonBase, { identity, tokens, node }: ConnectParts): Connections {
  const { log, serverClock, notify } = base;
  const { proxies } = base.config;
  const { nodeId, platformUrl } = identity;
  const token = (): Promise<string> => tokens.token();
  const bootId = randomUUID();
  const held = (): Heartbeat => {
    const current = node.desired.current();
    return { epoch: current?.epoch ?? "", generation: current?.generation ?? 0 };
  };
  const onTokenRefused = (refused: string): void => tokens.invalidate(refused);
  const control = createTrpcLink({ platformUrl, nodeId, token, onTokenRefused, proxies, log });
  notify("STATUS=Connecting to the platform; workloads keep running.");
  const link = startLink({
    control,
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
    onState: (state) => {
      node.onDesired(state);
      node.updater.asked(state.daemon ?? null);
    },
    onLive: (connection) => {
      notify("STATUS=Connected to the platform.");
      node.linkChanged(true);
      node.reporter.attach(connection);
      node.events.attach(connection);
      node.secrets.attach(connection);
      node.workloadTokens.attach(connection);
    },
    onDown: () => {
      notify("STATUS=Cannot reach the platform, retrying; workloads keep running.");
      node.linkChanged(false);
      node.reporter.detach();
      node.events.detach();
      node.secrets.detach();
      node.workloadTokens.detach();
    },
  });
  const { handler } = node;
  const tunnel: Tunnel = startTunnel({ platformUrl, nodeId, token, handler, proxies, clock, random, log });
  return {
    goodbye: () => link.goodbye(),
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
