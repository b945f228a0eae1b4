import {
  agreedVersion,
  type Heartbeat,
  type HeartbeatAnswer,
  type Hello,
  type HelloAnswer,
  type Observation,
  PROTOCOL_VERSIONS,
  type ReportedNodeEvent,
  type WorkerTokenAnswer,
} from "@fairlead/protocol/daemon-link";
import type { SecretAnswer } from "@fairlead/protocol/secrets";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { DesiredState } from "@fairlead/protocol/workload";
import { TRPCError } from "@trpc/server";
import type { Logger } from "pino";
import type { BoundCounters } from "../../telemetry/bounds/bound-counters.ts";
import type { AgentTokenService } from "../agents/access/agent-token-service.ts";
import type { NodeChangeFeed } from "../nodes/node-change-feed.ts";
import type { NodeLiveness } from "../nodes/observed/node-liveness.ts";
import type { NodeReportService } from "../nodes/observed/node-report-service.ts";
import type { OwnedSecretService } from "../secrets/owned-secret-service.ts";
import { LinkGreetings } from "./link-greetings.ts";
import type { EndLink, LinkService, LinkSession } from "./link-service.ts";
import { Wake } from "./wake.ts";

/** Ends one open link. */
type End = () => void;

/** At most one daemon speaks for a node: the one that said hello last. */
export class LinkHolders {
  readonly #holders = new Map<string, End>();

  /** Gives the node's place to this link, and ends the one that had it. */
  take(nodeId: string, end: End): void {
    const former = this.#holders.get(nodeId);
    this.#holders.set(nodeId, end);
    if (former !== end) former?.();
  }

  holds(nodeId: string, end: End): boolean {
    return this.#holders.get(nodeId) === end;
  }

  /** This link is gone; a newer one's place is not touched. */
  leave(nodeId: string, end: End): void {
    if (this.#holders.get(nodeId) === end) this.#holders.delete(nodeId);
  }
}

export interface LinkHubDeps {
  readonly reports: NodeReportService;
  readonly liveness: NodeLiveness;
  readonly secrets: Pick<OwnedSecretService, "deliver">;
  readonly agentTokens: Pick<AgentTokenService, "issue">;
  readonly changes: NodeChangeFeed;
  readonly clock: Clock;
  readonly log: Logger;
  readonly bounds: Pick<BoundCounters, "reached">;
  /** Resend interval of the desired state, in case a push was lost. */
  readonly resyncMs: number;
  /** Supported protocol versions; default: those of this release. */
  readonly protocolVersions?: readonly number[];
}

/** A daemon's first message is hello. A second link may open before the first is found dead. */
const GREETINGS = { helloMs: 10_000, perNode: 2 } as const;

/** The server's side of all daemon links. Sessions forward to the node services. */
export class LinkHub implements LinkService {
  readonly #deps: LinkHubDeps;
  readonly #holders = new LinkHolders();
  /** Subscriptions by node, so that the cost of a change does not grow with the fleet. */
  readonly #wakes = new Map<string, Set<Wake>>();
  readonly #greetings = new LinkGreetings(GREETINGS);
  #heartbeats = 0;
  #opened = 0;

  constructor(deps: LinkHubDeps) {
    this.#deps = deps;
    deps.changes.listen(({ nodeId, aspect }) => {
      if (aspect === "desired") for (const wake of this.#wakes.get(nodeId) ?? []) wake.ring();
    });
  }

  /** Links opened since the start. */
  get opened(): number {
    return this.#opened;
  }

  /** Nodes with a link whose hello is unanswered. */
  get greeting(): number {
    return this.#greetings.nodes;
  }

  /** Heartbeats since the start. */
  get heartbeats(): number {
    return this.#heartbeats;
  }

  connect(nodeId: string, endLink: EndLink): LinkSession {
    this.#opened += 1;
    const end = (): void => endLink("taken-over");
    const greeting = this.#greetings.open(nodeId, (bound) => {
      this.#deps.bounds.reached(bound);
      this.#deps.log.info({ nodeId, bound }, "daemon link closed: no hello received");
      endLink("silent");
    });
    // Not before its hello: a link that breaks earlier must not shorten the time that its node has to reconnect after a restart.
    let subscription = new AbortController();
    // Pending calls after goodbye must not make it look present.
    let isLeaving = false;
    return {
      hello: async (hello) => {
        greeting.answering();
        try {
          const protocolVersion = this.#agree(hello);
          this.#holders.take(nodeId, end);
          const answer = await this.#hello(nodeId, hello, protocolVersion);
          greeting.done();
          return answer;
        } catch (error) {
          greeting.refused();
          throw error;
        }
      },
      heartbeat: (heartbeat) => this.#heartbeat(nodeId, heartbeat),
      observe: async (observation) => {
        if (!isLeaving) await this.#observe(nodeId, observation);
      },
      events: (events) => this.#events(nodeId, events),
      secret: ({ name }) => this.#secret(nodeId, name),
      workerToken: ({ workloadId }) => this.#workerToken(nodeId, workloadId),
      goodbye: async () => {
        if (!this.#holders.holds(nodeId, end)) return;
        isLeaving = true;
        this.#deps.log.info({ nodeId }, "daemon said goodbye");
        await this.#deps.liveness.left(nodeId);
      },
      desiredStates: (signal) => {
        subscription.abort();
        subscription = new AbortController();
        const ended = AbortSignal.any([subscription.signal, ...(signal === undefined ? [] : [signal])]);
        return this.#desiredStates(nodeId, ended);
      },
      flooded: (reason) => this.#flooded(nodeId, reason),
      ended: () => {
        subscription.abort();
        greeting.done();
        this.#holders.leave(nodeId, end);
      },
    };
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
      message: `This server supports protocol ${spoken.join(", ")}; the daemon supports ${hello.protocolVersions.join(", ")}. Update the older of the two.`,
    });
  }

  async #hello(nodeId: string, hello: Hello, protocolVersion: number): Promise<HelloAnswer> {
    this.#deps.log.info({ nodeId, bootId: hello.bootId, daemonVersion: hello.daemonVersion }, "daemon said hello");
    await this.#deps.reports.hello(nodeId, hello);
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

  async #events(nodeId: string, events: readonly ReportedNodeEvent[]): Promise<void> {
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

  #flooded(nodeId: string, reason: string): void {
    this.#deps.reports
      .flooded(nodeId, reason)
      .catch((error: unknown) => this.#deps.log.warn({ err: error, nodeId }, "an event could not be stored"));
  }

  #beat(nodeId: string): HeartbeatAnswer {
    return { ...this.#deps.liveness.beat(nodeId), serverTime: this.#deps.clock.now() };
  }

  async *#desiredStates(nodeId: string, signal: AbortSignal): AsyncGenerator<DesiredState> {
    const wake = new Wake();
    const wakes = this.#wakes.get(nodeId) ?? new Set();
    this.#wakes.set(nodeId, wakes.add(wake));
    try {
      while (!signal.aborted) {
        yield await this.#deps.reports.desiredState(nodeId);
        await wake.next({ timeoutMs: this.#deps.resyncMs, signal });
      }
    } finally {
      wakes.delete(wake);
      if (wakes.size === 0 && this.#wakes.get(nodeId) === wakes) this.#wakes.delete(nodeId);
    }
  }
}
