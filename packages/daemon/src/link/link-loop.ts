import { type Heartbeat, type Hello, PROTOCOL_VERSIONS } from "@fairlead/protocol/daemon-link";
import type { DesiredState } from "@fairlead/protocol/workload";
import { type Log, reasonOf } from "../log.ts";
import { sleep, type Timers } from "../timers.ts";
import { type ControlLink, type LinkConnection, LinkRefused, LinkTakenOver } from "./control-link.ts";
import { type LinkEvent, type LinkState, nextLinkState } from "./link-state.ts";
import { PlatformError } from "./platform-answer.ts";
import type { ServerClock } from "./server-clock.ts";

export interface LinkLoopDeps {
  readonly control: ControlLink;
  readonly serverClock: ServerClock;
  readonly timers: Timers;
  readonly random: () => number;
  readonly log: Log;
  readonly hello: () => Promise<Hello>;
  /** Which desired state this node holds now. */
  readonly held: () => Heartbeat;
  readonly onState: (state: DesiredState) => void;
  /** The link is live, or the server has lost sight of this node: whoever reports sends everything anew on this connection. */
  readonly onLive: (connection: LinkConnection, protocolVersion: number) => void;
  readonly onDown: () => void;
}

export interface LinkLoop {
  state(): LinkState;
  close(): Promise<void>;
}

/** How often the whole desired state is asked for again, so that a lost push can never matter (design §6). */
const RESYNC_MS = 10 * 60_000;
const TAKEN_OVER_PAUSE_MS = 10_000;

/** Keeps one link to the control plane, for ever. On every connect: hello, then subscribe, then a full report. */
export function startLink(deps: LinkLoopDeps): LinkLoop {
  let state: LinkState = { name: "offline", attempt: 0 };
  const closing = new AbortController();
  const apply = (event: LinkEvent): LinkState => {
    state = nextLinkState(state, event, [deps.random(), deps.random()]);
    return state;
  };
  const run = async (): Promise<void> => {
    while (!closing.signal.aborted) {
      const retryAfterMs = await session(deps, { apply, signal: closing.signal });
      const after = apply({ type: "lost", retryAfterMs });
      if (after.name === "backing-off") await sleep(deps.timers, after.delayMs, closing.signal);
      apply({ type: "retry" });
    }
  };
  const running = run();
  return {
    state: () => state,
    close: () => {
      apply({ type: "close" });
      closing.abort();
      return running;
    },
  };
}

interface SessionContext {
  readonly apply: (event: LinkEvent) => LinkState;
  readonly signal: AbortSignal;
}

/** One connection from its opening to its end. @returns how long the platform host asked to wait, or null. */
async function session(deps: LinkLoopDeps, { apply, signal }: SessionContext): Promise<number | null> {
  let connection: LinkConnection | null = null;
  try {
    connection = await deps.control.connect(signal);
    apply({ type: "opened" });
    const greeting = await greet(deps, connection);
    apply({ type: "greeted" });
    deps.log.info({ skewMs: deps.serverClock.skew() }, "the link is live");
    connection.subscribe(deps.onState);
    deps.onLive(connection, greeting.protocolVersion);
    const reason = await keepAlive(deps, connection, greeting);
    deps.onDown();
    if (reason instanceof LinkTakenOver) return takenOver(deps.log);
    if (!signal.aborted) deps.log.warn({ reason: reason.message }, "the link was lost");
    return null;
  } catch (error) {
    if (!signal.aborted) deps.log.warn({ reason: reasonOf(error) }, "the link could not be opened");
    return error instanceof LinkRefused || error instanceof PlatformError ? error.retryAfterMs : null;
  } finally {
    connection?.close();
  }
}

/** Two daemons with one identity would else take the place from each other without a pause. @returns how long to wait. */
function takenOver(log: Log): number {
  log.error(
    "another daemon runs with this node's identity: this state folder was probably copied; stop one of the two and enrol it as a node of its own",
  );
  return TAKEN_OVER_PAUSE_MS;
}

interface Greeting {
  /** Between heartbeats. */
  readonly intervalMs: number;
  readonly protocolVersion: number;
}

async function greet(deps: LinkLoopDeps, connection: LinkConnection): Promise<Greeting> {
  const answer = await connection.hello(await deps.hello());
  deps.serverClock.learn(answer.serverTime);
  if (!PROTOCOL_VERSIONS.some((version) => version === answer.protocolVersion)) {
    throw new Error(
      `the control plane speaks link version ${answer.protocolVersion}, this daemon ${PROTOCOL_VERSIONS.join(", ")}`,
    );
  }
  return { intervalMs: heartbeatMs(answer.heartbeatSeconds), protocolVersion: answer.protocolVersion };
}

/** Never busier than once a second, whatever the server says. */
function heartbeatMs(seconds: number): number {
  return Math.max(1, seconds) * 1000;
}

/** Sends heartbeats until the connection is gone. @returns the reason. */
async function keepAlive(deps: LinkLoopDeps, connection: LinkConnection, greeting: Greeting): Promise<Error> {
  const gone = new AbortController();
  const lost = connection.lost.finally(() => gone.abort());
  const resync = (): void => {
    connection.subscribe(deps.onState);
    cancelResync = deps.timers.after(RESYNC_MS, resync);
  };
  let cancelResync = deps.timers.after(RESYNC_MS, resync);
  // The first one comes at random inside the interval, so that a fleet that came back together spreads out.
  let wait = deps.random() * greeting.intervalMs;
  while (!gone.signal.aborted) {
    await sleep(deps.timers, wait, gone.signal);
    if (gone.signal.aborted) break;
    try {
      const answer = await connection.heartbeat(deps.held());
      deps.serverClock.learn(answer.serverTime);
      wait = heartbeatMs(answer.heartbeatSeconds);
      if (answer.report === true) deps.onLive(connection, greeting.protocolVersion);
    } catch (error) {
      deps.log.warn({ reason: reasonOf(error) }, "a heartbeat failed; opening the link anew");
      connection.close();
    }
  }
  cancelResync();
  return lost;
}
