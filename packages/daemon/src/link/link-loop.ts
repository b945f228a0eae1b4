import { type Heartbeat, type Hello, PROTOCOL_VERSIONS } from "@fairlead/protocol/daemon-link";
import type { DesiredState } from "@fairlead/protocol/workload";
import { type DaemonLog, reasonOf } from "../process/log.ts";
import { sleep, type Timers } from "../process/timers.ts";
import { type ControlLink, type LinkConnection, LinkFlooded, LinkRefused, LinkTakenOver } from "./control-link.ts";
import { type LinkEvent, type LinkState, nextLinkState } from "./link-state.ts";
import { PlatformError } from "./platform-answer.ts";
import type { ServerClock } from "./server-clock.ts";

export interface LinkLoopDeps {
  readonly control: ControlLink;
  readonly serverClock: ServerClock;
  readonly timers: Timers;
  readonly random: () => number;
  readonly log: DaemonLog;
  readonly hello: () => Promise<Hello>;
  /** The desired state that this node has. */
  readonly held: () => Heartbeat;
  readonly onState: (state: DesiredState) => void;
  /** The link is live or the server lost this node's state: everything must be reported again. */
  readonly onLive: (connection: LinkConnection) => void;
  readonly onDown: () => void;
}

export interface LinkLoop {
  state(): LinkState;
  /** Announces the stop to the control plane if possible, with a short timeout. */
  goodbye(): Promise<void>;
  close(): Promise<void>;
}

/** Interval for requesting the whole desired state again, in case a push was lost. */
const RESYNC_MS = 10 * 60_000;
const GOODBYE_MS = 2000;
const TAKEN_OVER_PAUSE_MS = 10_000;
/** Long enough for the control plane's limits to allow a full report again. */
const FLOODED_PAUSE_MS = 60_000;

/** Keeps one link to the control plane open. On every connect: hello, subscribe, full report. */
export function startLink(deps: LinkLoopDeps): LinkLoop {
  let state: LinkState = { name: "offline", attempt: 0 };
  const closing = new AbortController();
  const apply = (event: LinkEvent): LinkState => {
    state = nextLinkState(state, event, [deps.random(), deps.random()]);
    return state;
  };
  let live: LinkConnection | null = null;
  const onLive = (connection: LinkConnection | null): void => {
    live = connection;
  };
  const run = async (): Promise<void> => {
    while (!closing.signal.aborted) {
      const retryAfterMs = await session(deps, { apply, onLive, signal: closing.signal });
      const after = apply({ type: "lost", retryAfterMs });
      if (after.name === "backing-off") await sleep(deps.timers, after.delayMs, closing.signal);
      apply({ type: "retry" });
    }
  };
  const running = run();
  return {
    state: () => state,
    goodbye: () => sayGoodbye(deps, live),
    close: () => {
      apply({ type: "close" });
      closing.abort();
      return running;
    },
  };
}

interface SessionContext {
  readonly apply: (event: LinkEvent) => LinkState;
  readonly onLive: (connection: LinkConnection | null) => void;
  readonly signal: AbortSignal;
}

/** Runs one connection. @returns the delay that the platform host requested, or null. */
async function session(deps: LinkLoopDeps, { apply, onLive, signal }: SessionContext): Promise<number | null> {
  let connection: LinkConnection | null = null;
  try {
    connection = await deps.control.connect(signal);
    apply({ type: "opened" });
    const intervalMs = await greet(deps, connection);
    apply({ type: "greeted" });
    onLive(connection);
    deps.log.info({ skewMs: deps.serverClock.skew() }, "link established");
    connection.subscribe(deps.onState);
    deps.onLive(connection);
    const reason = await keepAlive(deps, connection, intervalMs);
    deps.onDown();
    if (reason instanceof LinkTakenOver) return takenOver(deps.log);
    if (reason instanceof LinkFlooded) {
      deps.log.error({ reason: reason.message }, "this daemon exceeded the platform's limits; waiting one minute");
      return FLOODED_PAUSE_MS;
    }
    if (!signal.aborted) deps.log.warn({ reason: reason.message }, "link lost");
    return null;
  } catch (error) {
    if (!signal.aborted) deps.log.warn({ reason: reasonOf(error) }, "could not open the link");
    return error instanceof LinkRefused || error instanceof PlatformError ? error.retryAfterMs : null;
  } finally {
    onLive(null);
    connection?.close();
  }
}

async function sayGoodbye({ timers, log }: LinkLoopDeps, connection: LinkConnection | null): Promise<void> {
  if (connection === null) return;
  const done = new AbortController();
  const said = connection
    .goodbye()
    .catch((error: unknown) =>
      log.info({ reason: reasonOf(error) }, "could not announce the stop to the control plane"),
    )
    .finally(() => done.abort());
  await Promise.race([said, sleep(timers, GOODBYE_MS, done.signal)]);
}

/** Two daemons with one identity would otherwise disconnect each other in a loop. @returns how long to wait. */
function takenOver(log: DaemonLog): number {
  log.error(
    "another daemon is using this node's identity, probably because this state folder was copied; stop one of them and enrol it as a separate node",
  );
  return TAKEN_OVER_PAUSE_MS;
}

/** @returns milliseconds between heartbeats */
async function greet(deps: LinkLoopDeps, connection: LinkConnection): Promise<number> {
  const answer = await connection.hello(await deps.hello());
  deps.serverClock.learn(answer.serverTime);
  if (!PROTOCOL_VERSIONS.some((version) => version === answer.protocolVersion)) {
    throw new Error(
      `the control plane uses link version ${answer.protocolVersion}, this daemon supports ${PROTOCOL_VERSIONS.join(", ")}`,
    );
  }
  return heartbeatMs(answer.heartbeatSeconds);
}

/** At most once per second, whatever the server requests. */
function heartbeatMs(seconds: number): number {
  return Math.max(1, seconds) * 1000;
}

/** Sends heartbeats until the connection is lost. @returns the reason. */
async function keepAlive(deps: LinkLoopDeps, connection: LinkConnection, intervalMs: number): Promise<Error> {
  const gone = new AbortController();
  const lost = connection.lost.finally(() => gone.abort());
  const resync = (): void => {
    connection.subscribe(deps.onState);
    cancelResync = deps.timers.after(RESYNC_MS, resync);
  };
  let cancelResync = deps.timers.after(RESYNC_MS, resync);
  // The first heartbeat is random within the interval, to spread out a fleet that reconnected together.
  let wait = deps.random() * intervalMs;
  while (!gone.signal.aborted) {
    await sleep(deps.timers, wait, gone.signal);
    if (gone.signal.aborted) break;
    try {
      const answer = await connection.heartbeat(deps.held());
      deps.serverClock.learn(answer.serverTime);
      wait = heartbeatMs(answer.heartbeatSeconds);
      if (answer.report === true) deps.onLive(connection);
    } catch (error) {
      deps.log.warn({ reason: reasonOf(error) }, "heartbeat failed; reconnecting");
      connection.close();
    }
  }
  cancelResync();
  return lost;
}
