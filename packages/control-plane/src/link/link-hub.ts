import type { Clock } from "@fairlead/protocol/clock";
import {
  agreedVersion,
  type Heartbeat,
  type HeartbeatAnswer,
  type Hello,
  type HelloAnswer,
  type NodeEvent,
  type Observation,
  PROTOCOL_VERSIONS,
  type WorkerTokenAnswer,
} from "@fairlead/protocol/daemon-link";
import type { SecretAnswer } from "@fairlead/protocol/secrets";
import type { DesiredState } from "@fairlead/protocol/workload";
import { TRPCError } from "@trpc/server";
import type { Logger } from "pino";
import type { AgentTokenService } from "../agents/agent-token-service.ts";
import type { NodeChanges } from "../nodes/node-changes.ts";
import type { NodeLiveness } from "../nodes/node-liveness.ts";
import type { NodeReportService } from "../nodes/node-report-service.ts";
import type { OwnedSecretService } from "../secrets/owned-secret-service.ts";
import { LinkHolders } from "./link-holders.ts";
import type { LinkService, LinkSession } from "./link-service.ts";
import { Wake } from "./wake.ts";

export interface LinkHubDeps {
  readonly reports: NodeReportService;
  readonly liveness: NodeLiveness;
  readonly secrets: Pick<OwnedSecretService, "deliver">;
  readonly agentTokens: Pick<AgentTokenService, "issue">;
  readonly changes: NodeChanges;
  readonly clock: Clock;
  readonly log: Logger;
  /** The desired state is sent again after this long without a change, so that a lost push can never matter. */
  readonly resyncMs: number;
  /** Versions of the link that are spoken; those of this release if left out. */
  readonly protocolVersions?: readonly number[];
}

interface Subscription {
  readonly signal: AbortSignal | undefined;
  readonly protocolVersion: number;
}

/** The server's side of every daemon link: who speaks for a node. Its state is the node services': a session only forwards to them. */
export class LinkHub implements LinkService {
  readonly #deps: LinkHubDeps;
  readonly #holders = new LinkHolders();
  /** Subscriptions by node: a change must not cost more in a larger fleet. */
  readonly #wakes = new Map<string, Set<Wake>>();
  /** Links whose hello is not answered yet. */
  readonly #greeting = new Set<LinkSession>();
  #heartbeats = 0;
  #opened = 0;

  constructor(deps: LinkHubDeps) {
    this.#deps = deps;
    deps.changes.listen(({ nodeId, aspect }) => {
      if (aspect === "desired") for (const wake of this.#wakes.get(nodeId) ?? []) wake.ring();
    });
  }

  /** How many links were opened since the start. */
  get opened(): number {
    return this.#opened;
  }

  /** How many of them wait for the answer to their hello. */
  get greeting(): number {
    return this.#greeting.size;
  }

  /** How many heartbeats came since the start. */
  get heartbeats(): number {
    return this.#heartbeats;
  }

  connect(nodeId: string, end: () => void): LinkSession {
    this.#opened += 1;
    // Not heard before its hello: a link that breaks until then would leave its node three heartbeats to come back, not the time of a restart.
    // What every version knows, until both sides have agreed on one.
    let protocolVersion = Math.min(...this.#spoken);
    const session: LinkSession = {
      hello: async (hello) => {
        protocolVersion = this.#agree(hello);
        this.#holders.take(nodeId, end);
        const answer = await this.#hello(nodeId, hello, protocolVersion);
        this.#greeting.delete(session);
        return answer;
      },
      heartbeat: (heartbeat) => this.#heartbeat(nodeId, heartbeat),
      observe: (observation) => this.#observe(nodeId, observation),
      events: (events) => this.#events(nodeId, events),
      secret: ({ name }) => this.#secret(nodeId, name),
      workerToken: ({ workloadId }) => this.#workerToken(nodeId, workloadId),
      desiredStates: (signal) => this.#desiredStates(nodeId, { signal, protocolVersion }),
      ended: () => {
        this.#greeting.delete(session);
        this.#holders.leave(nodeId, end);
      },
    };
    this.#greeting.add(session);
    return session;
  }

  get #spoken(): readonly number[] {
    return this.#deps.protocolVersions ?? PROTOCOL_VERSIONS;
  }

  #agree(hello: Hello): number {
    const spoken = this.#spoken;
    const version = agreedVersion(spoken, hello.protocolVersions);
    if (version !== null) return version;
    throw new TRPCError({
      code: "PRECONDITION_FAILED",
      message: `This server speaks protocol ${spoken.join(", ")}; the daemon speaks ${hello.protocolVersions.join(", ")}. Update the older of the two.`,
    });
  }

  async #hello(nodeId: string, hello: Hello, protocolVersion: number): Promise<HelloAnswer> {
    this.#deps.log.info({ nodeId, bootId: hello.bootId, daemonVersion: hello.daemonVersion }, "daemon said hello");
    await this.#deps.reports.hello(nodeId, hello, protocolVersion);
    return { protocolVersion, ...this.#beat(nodeId) };
  }

  async #heartbeat(nodeId: string, _heartbeat: Heartbeat): Promise<HeartbeatAnswer> {
    this.#heartbeats += 1;
    await this.#deps.reports.heartbeat(nodeId);
    return this.#beat(nodeId);
  }

  async #observe(nodeId: string, observation: Observation): Promise<void> {
    this.#deps.liveness.heard(nodeId);
    await this.#deps.reports.observe(nodeId, observation);
  }

  async #events(nodeId: string, events: readonly NodeEvent[]): Promise<void> {
    await this.#deps.reports.events(nodeId, events);
  }

  async #secret(nodeId: string, key: string): Promise<SecretAnswer> {
    this.#deps.liveness.heard(nodeId);
    return this.#deps.secrets.deliver(nodeId, key);
  }

  async #workerToken(nodeId: string, agentId: string): Promise<WorkerTokenAnswer> {
    this.#deps.liveness.heard(nodeId);
    return this.#deps.agentTokens.issue(nodeId, agentId);
  }

  #beat(nodeId: string): HeartbeatAnswer {
    return { ...this.#deps.liveness.beat(nodeId), serverTime: this.#deps.clock.now() };
  }

  async *#desiredStates(nodeId: string, { signal, protocolVersion }: Subscription): AsyncGenerator<DesiredState> {
    const wake = new Wake();
    const wakes = this.#wakes.get(nodeId) ?? new Set();
    this.#wakes.set(nodeId, wakes.add(wake));
    try {
      while (!signal?.aborted) {
        yield await this.#deps.reports.desiredState(nodeId, protocolVersion);
        await wake.next({ timeoutMs: this.#deps.resyncMs, signal });
      }
    } finally {
      wakes.delete(wake);
      if (wakes.size === 0 && this.#wakes.get(nodeId) === wakes) this.#wakes.delete(nodeId);
    }
  }
}
