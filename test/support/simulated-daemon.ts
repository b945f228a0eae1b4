import { randomUUID } from "node:crypto";
import { PROTOCOL_VERSIONS } from "@fairlead/protocol/daemon-link";
import type { DesiredState, WorkloadReport } from "@fairlead/protocol/workload";
import { pino } from "pino";
import type { LinkConnection } from "../../packages/daemon/src/link/control-link.ts";
import { nodeHttpClient } from "../../packages/daemon/src/link/http-client.ts";
import { IdentityTokens } from "../../packages/daemon/src/link/identity.ts";
import { type LinkLoop, startLink } from "../../packages/daemon/src/link/link-loop.ts";
import { ServerClock } from "../../packages/daemon/src/link/server-clock.ts";
import { createTrpcLink } from "../../packages/daemon/src/link/trpc-link.ts";
import { systemTimers } from "../../packages/daemon/src/process/timers.ts";
import { DAEMON_VERSION } from "../../packages/daemon/src/process/version.ts";
import { readyCall } from "../../packages/daemon/src/report/ready-call.ts";
import { Reporter } from "../../packages/daemon/src/report/reporter.ts";
import type { EnrolledIdentity } from "../../packages/daemon/src/state/identity-store.ts";
import type { IncomingCallHandler } from "../../packages/daemon/src/tunnel/tunnel-call.ts";
import { startTunnel, type Tunnel } from "../../packages/daemon/src/tunnel/tunnel-client.ts";
import { systemClock } from "../../packages/protocol/src/values/clock.ts";

/** What a daemon keeps on disk, as JSON. */
export interface SimulatedNode {
  readonly identity: EnrolledIdentity;
  readonly identityToken: string;
}

interface SimulatedDaemonOptions {
  readonly tunnel: boolean;
  /** Told of each desired state that is new to this node. */
  readonly onState?: (state: DesiredState) => void;
  /** Of calls through the tunnel; by default they break off. */
  readonly handler?: IncomingCallHandler;
}

const runsNothing: IncomingCallHandler = (call) => call.break(new Error("this daemon runs nothing"));
const log = pino({ level: "silent" });
const random = Math.random;

/**
 * A daemon without a machine: the real link, identity, reports, ready calls and tunnel; in place of the reconcile loop, an engine
 * that runs whatever is asked for at once.
 */
export class SimulatedDaemon {
  readonly #reporter: Reporter;
  readonly #link: LinkLoop;
  readonly #tunnel: Tunnel | null;
  #desired: DesiredState | null = null;
  #connection: LinkConnection | null = null;
  /** How often the link was live. */
  links = 0;

  constructor(
    { identity, identityToken }: SimulatedNode,
    { tunnel, onState = () => undefined, handler = runsNothing }: SimulatedDaemonOptions,
  ) {
    const { platformUrl, nodeId } = identity;
    const serverClock = new ServerClock(systemClock);
    const http = nodeHttpClient;
    const tokens = new IdentityTokens({ identity, http, clock: systemClock, serverClock, newNonce: randomUUID, log });
    tokens.accept({ identityToken, expiresIn: 24 * 3600 });
    const token = (): Promise<string> => tokens.token();
    const callReady = readyCall({ platformUrl, http, tokens });
    this.#reporter = new Reporter({ nodeId, operatingSystem: "none", callReady, timers: systemTimers, random, log });
    const onTokenRefused = (refused: string): void => tokens.invalidate(refused);
    const bootId = randomUUID();
    this.#link = startLink({
      control: createTrpcLink({ platformUrl, nodeId, token, onTokenRefused, log }),
      serverClock,
      timers: systemTimers,
      random,
      log,
      hello: async () => ({ protocolVersions: [...PROTOCOL_VERSIONS], daemonVersion: DAEMON_VERSION, bootId, host }),
      held: () => ({ epoch: this.#desired?.epoch ?? "", generation: this.#desired?.generation ?? 0 }),
      onState: (state) => {
        const isNew = state.generation !== this.#desired?.generation;
        this.#desired = state;
        const { epoch, generation } = state;
        this.#reporter.update({ epoch, generation, workloadReports: state.workloads.map(reportOf(generation)) });
        if (isNew) onState(state);
      },
      onLive: (connection) => {
        this.links += 1;
        this.#connection = connection;
        this.#reporter.attach(connection);
      },
      onDown: () => {
        this.#connection = null;
        this.#reporter.detach();
      },
    });
    this.#tunnel = tunnel
      ? startTunnel({
          platformUrl,
          nodeId,
          token,
          handler,
          clock: systemClock,
          random,
          log,
        })
      : null;
  }

  get isLive(): boolean {
    return this.#link.state().name === "live";
  }

  get hasTunnel(): boolean {
    return this.#tunnel?.state === "open";
  }

  /** What the agent would find in its token's file; null where it may have none. */
  async workerToken(agentId: string): Promise<string | null> {
    if (this.#connection === null) throw new Error("the daemon has no link");
    const answer = await this.#connection.workerToken({ workloadId: agentId });
    return answer.state === "issued" ? answer.token : null;
  }

  async close(): Promise<void> {
    await Promise.all([this.#link.close(), this.#reporter.close(), this.#tunnel?.close()]);
  }
}

const host = {
  operatingSystem: "none",
  kernel: "",
  architecture: "x64",
  hostName: "simulated",
  cpus: 1,
  memoryMb: 1,
  diskFreeMb: 1,
  dockerVersion: "",
};

const reportOf =
  (generation: number) =>
  ({ workloadId, workloadType, image, models }: DesiredState["workloads"][number]): WorkloadReport => ({
    workloadId,
    workloadType,
    ready: true,
    state: "running",
    version: "1.0",
    image,
    imageDigest: `sha256:${"0".repeat(64)}`,
    generation,
    models: [...(models ?? ["tinychat-6m"])],
    startedAt: "2026-01-01T00:00:00Z",
    restartCount: 0,
    lastExit: null,
    message: "",
  });
