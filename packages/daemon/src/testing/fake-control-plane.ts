import type {
  Heartbeat,
  Hello,
  Observation,
  ReportedNodeEvent,
  WorkerTokenAnswer,
} from "@fairlead/protocol/daemon-link";
import type { SecretAnswer } from "@fairlead/protocol/secrets";
import type { DesiredState } from "@fairlead/protocol/workload";
import {
  type ControlLink,
  type LinkConnection,
  LinkFlooded,
  LinkRefused,
  LinkTakenOver,
} from "../link/control-link.ts";

/** Controls for the other side of a link. */
export interface ControlPlaneDouble {
  readonly received: {
    readonly hellos: Hello[];
    readonly heartbeats: Heartbeat[];
    readonly observations: Observation[];
    readonly events: ReportedNodeEvent[];
    /** One entry per goodbye. */
    readonly goodbyes: unknown[];
  };
  /** Responses for secrets; others are missing. */
  readonly secrets: Map<string, SecretAnswer>;
  /** Responses for workload tokens; others have none. */
  readonly workerTokens: Map<string, WorkerTokenAnswer>;
  /** Number of opened subscriptions. */
  subscriptions: number;
  readonly heartbeatSeconds: number;
  readonly serverTime: number;
  /** Sends the desired state to all current and future subscribers. */
  push(state: DesiredState): void;
  /** Rejects the next connection attempt. */
  refuseNext(status: number, retryAfterSeconds: number | null): void;
  /** Fails the next call (not subscription). */
  failNextCall(): void;
  /** Drops all connections. */
  drop(): void;
  /** Closes all connections because another daemon connected. */
  takeOver(): void;
}

/** An in-memory control plane. */
export class FakeControlPlane implements ControlPlaneDouble, ControlLink {
  readonly received = {
    hellos: [] as Hello[],
    heartbeats: [] as Heartbeat[],
    observations: [] as Observation[],
    events: [] as ReportedNodeEvent[],
    goodbyes: [] as unknown[],
  };
  readonly secrets = new Map<string, SecretAnswer>();
  readonly workerTokens = new Map<string, WorkerTokenAnswer>();
  /** Delays the response to a goodbye. */
  goodbyeGate: Promise<void> = Promise.resolve();
  subscriptions = 0;
  connections = 0;
  attempts = 0;
  down = false;
  protocolVersion = 1;
  heartbeatSeconds = 10;
  /** Response to the next heartbeat. */
  wantsReport = false;
  serverTime = Date.UTC(2026, 0, 1);
  #state: DesiredState | null = null;
  #refusal: LinkRefused | null = null;
  #failNext = false;
  readonly #open = new Set<{ onState: ((state: DesiredState) => void) | null; end: (reason: Error) => void }>();

  push(state: DesiredState): void {
    this.#state = state;
    for (const connection of this.#open) connection.onState?.(state);
  }

  refuseNext(status: number, retryAfterSeconds: number | null): void {
    this.#refusal = new LinkRefused(status, retryAfterSeconds === null ? null : retryAfterSeconds * 1000);
  }

  failNextCall(): void {
    this.#failNext = true;
  }

  drop(): void {
    for (const connection of this.#open) connection.end(new Error("the control plane dropped the link"));
  }

  takeOver(): void {
    for (const connection of this.#open) connection.end(new LinkTakenOver());
  }

  /** Closes all connections for exceeding the limits. */
  closeFlooded(): void {
    for (const connection of this.#open) connection.end(new LinkFlooded("too many messages"));
  }

  #reportWanted(): { report?: true } {
    if (!this.wantsReport) return {};
    this.wantsReport = false;
    return { report: true };
  }

  async connect(signal: AbortSignal): Promise<LinkConnection> {
    this.attempts += 1;
    const refusal = this.#refusal;
    this.#refusal = null;
    if (refusal) throw refusal;
    if (this.down || signal.aborted) throw new Error("the platform host does not answer");
    this.connections += 1;
    const lost = Promise.withResolvers<Error>();
    const entry = {
      onState: null as ((state: DesiredState) => void) | null,
      end: (reason: Error): void => {
        this.#open.delete(entry);
        lost.resolve(reason);
      },
    };
    this.#open.add(entry);
    signal.addEventListener("abort", () => entry.end(new Error("the link was closed")));
    const answer = () => ({ heartbeatSeconds: this.heartbeatSeconds, serverTime: this.serverTime });
    const { received } = this;
    return {
      hello: (hello) =>
        this.#answer(entry, () => {
          received.hellos.push(hello);
          return { ...answer(), protocolVersion: this.protocolVersion };
        }),
      heartbeat: (heartbeat) =>
        this.#answer(entry, () => {
          received.heartbeats.push(heartbeat);
          return { ...answer(), ...this.#reportWanted() };
        }),
      observe: (observation) => this.#answer(entry, () => void received.observations.push(observation)),
      events: (events) => this.#answer(entry, () => void received.events.push(...events)),
      secret: ({ name }) => this.#answer(entry, () => this.secrets.get(name) ?? { state: "missing" }),
      workerToken: ({ workloadId }) =>
        this.#answer(entry, () => this.workerTokens.get(workloadId) ?? { state: "none" }),
      goodbye: async () => {
        await this.#answer(entry, () => void received.goodbyes.push(null));
        await this.goodbyeGate;
      },
      subscribe: (onState) => {
        this.subscriptions += 1;
        entry.onState = onState;
        const state = this.#state;
        if (state) queueMicrotask(() => onState(state));
      },
      lost: lost.promise,
      close: () => entry.end(new Error("the link was closed")),
    };
  }

  async #answer<T>(entry: object, answer: () => T): Promise<T> {
    const fails = this.#failNext;
    this.#failNext = false;
    if (fails || !this.#open.has(entry as never)) throw new Error("the call failed");
    return answer();
  }
}
