import { randomUUID } from "node:crypto";
import { fileURLToPath } from "node:url";
import { rfc3339, systemClock } from "@fairlead/protocol/clock";
import { AGENTS_PROTOCOL_VERSION, type Heartbeat, PROTOCOL_VERSIONS } from "@fairlead/protocol/daemon-link";
import type { Logger } from "pino";
import type { DaemonConfig } from "./config.ts";
import { readHostFacts, readStaticFacts } from "./host/host-facts.ts";
import { notifier, Watchdog } from "./host/systemd.ts";
import { enroll } from "./link/enroll.ts";
import { nodeHttpClient } from "./link/http-client.ts";
import { IdentityTokens } from "./link/identity.ts";
import { startLink } from "./link/link-loop.ts";
import { type PreparedIdentity, prepareIdentity } from "./link/prepare-identity.ts";
import { ServerClock } from "./link/server-clock.ts";
import { createTrpcLink } from "./link/trpc-link.ts";
import { reasonOf } from "./log.ts";
import { type DaemonBase, type NodeParts, startWorkloads } from "./node-parts.ts";
import { DockerRuntime } from "./runtime/docker-runtime.ts";
import { EXIT, type ExitCode, StartError } from "./start-error.ts";
import { diskFiles } from "./state/files.ts";
import { type EnrolledIdentity, IdentityStore, isEnrolled } from "./state/identity-store.ts";
import { lockStateFolder } from "./state/state-lock.ts";
import { systemTimers } from "./timers.ts";
import { startTunnel, type Tunnel } from "./tunnel/tunnel-client.ts";
import { diskFolders } from "./update/folder-layer.ts";
import { installedAs } from "./update/install-layout.ts";
import { openUpdates, type UpdatesAtStart } from "./update/open-updates.ts";
import { DAEMON_VERSION } from "./version.ts";

/** The composition root: builds every part and joins them. */

const clock = systemClock;
const timers = systemTimers;
const random = Math.random;
const http = nodeHttpClient;
const program = fileURLToPath(import.meta.url);

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
  const manager = config.serviceManager;
  const notify = notifier(manager);
  const watchdog = new Watchdog({ manager, notify, timers });
  watchdog.start();
  options.signal.addEventListener("abort", () => notify("STOPPING=1"), { once: true });
  try {
    // First of all, since a version on trial may end anywhere.
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
  const store = new IdentityStore(diskFiles, config.stateDir);
  const token = config.bootstrapTokenFile === null ? null : await readToken(config.bootstrapTokenFile);
  const prepared = await prepareIdentity({ store, stateDir: config.stateDir, token, insecure: config.insecure });
  const base: DaemonBase = {
    ...parts,
    facts: await readStaticFacts(),
    runtime: new DockerRuntime(config.dockerSocket),
    serverClock: new ServerClock(clock),
    store,
  };
  // Ready means that this program works, not that the platform host answers: a start must not hang on the network.
  notify("READY=1");
  log.info({ nodeId: prepared.identity.nodeId, version: DAEMON_VERSION }, "the daemon has started");
  return runNode(base, prepared);
}

function openOwnUpdates({ stateDir }: DaemonConfig, log: Logger): Promise<UpdatesAtStart> {
  const now = rfc3339(clock.now());
  return openUpdates({ files: diskFiles, folders: diskFolders, stateDir, installed: installedAs(program), now, log });
}

/** That nothing can be done is believed of a version that is proven alone: one on trial is started again, and gives way in the end. */
async function untilProven(onTrial: boolean, run: () => Promise<ExitCode>): Promise<ExitCode> {
  if (!onTrial) return run();
  try {
    const code = await run();
    return code === EXIT.refused ? EXIT.fault : code;
  } catch (error) {
    throw error instanceof StartError ? new StartError(EXIT.fault, error.message, { cause: error }) : error;
  }
}

async function readToken(path: string): Promise<string | null> {
  const text = (await diskFiles.read(path))?.trim();
  return text ? text : null;
}

/** An enrolled node's workloads come first, whether the platform host answers or not. */
async function runNode(base: DaemonBase, { identity, enrollWith }: PreparedIdentity): Promise<ExitCode> {
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
  base: DaemonBase,
  { identity, token }: { identity: PreparedIdentity["identity"]; token: string },
): ReturnType<typeof enroll> {
  const { store, serverClock, log, signal } = base;
  const { operatingSystem } = base.facts;
  return enroll({ http, store, serverClock, timers, random, log }, { identity, token, operatingSystem, signal });
}

async function runEnrolled(
  base: DaemonBase,
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
    node.updater.handedOver.then(() => EXIT.updated),
    tokens.revoked.then((revoked) => {
      log.error(
        { reason: revoked.message },
        "this node's identity is no longer accepted; enrol it anew with a fresh bootstrap token",
      );
      return revoked.nodeDeleted ? "deleted" : EXIT.refused;
    }),
  ]);
  closing.abort();
  // Enrolling anew goes on until it is answered; a new version does not wait for that.
  const open = ended === EXIT.updated ? Promise.race([connections, Promise.resolve(null)]) : connections;
  await (await open)?.close();
  // On the word of a version that is proven alone.
  const gone = ended === "deleted" && !node.updater.isOnTrial && (await node.takeDown(signal));
  await node.close();
  log.info(
    { ended },
    gone ? "the daemon has ended, and so have its workloads" : "the daemon has ended; its workloads run on",
  );
  return ended === "deleted" ? EXIT.refused : ended;
}

interface ConnectParts {
  readonly identity: EnrolledIdentity;
  readonly tokens: IdentityTokens;
  readonly node: NodeParts;
}

/** The daemon link and the tunnel; each keeps itself up. */
function connect(base: DaemonBase, { identity, tokens, node }: ConnectParts): { close(): Promise<void> } {
  const { log, serverClock, notify } = base;
  const { nodeId, platformUrl } = identity;
  const token = (): Promise<string> => tokens.token();
  const bootId = randomUUID();
  const held = (): Heartbeat => {
    const current = node.desired.current();
    return { epoch: current?.epoch ?? "", generation: current?.generation ?? 0 };
  };
  notify("STATUS=Connecting to the platform; workloads run meanwhile.");
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
    onState: (state) => {
      node.onDesired(state);
      node.updater.asked(state.daemon ?? null);
    },
    onLive: (connection, protocolVersion) => {
      notify("STATUS=Connected to the platform.");
      node.linkChanged(true);
      node.reporter.attach(connection, protocolVersion);
      node.events.attach(connection);
      node.secrets.attach(connection);
      // One that does not know agents wants none, and is asked for nothing that it does not know.
      if (protocolVersion >= AGENTS_PROTOCOL_VERSION) node.workloadTokens.attach(connection);
    },
    onDown: () => {
      notify("STATUS=The platform does not answer; workloads run on, and the daemon goes on trying.");
      node.linkChanged(false);
      node.reporter.detach();
      node.events.detach();
      node.secrets.detach();
      node.workloadTokens.detach();
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
