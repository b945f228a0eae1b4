import type { Heartbeat, Hello, NodeEvent, Observation, WorkerTokenAnswer } from "@fairlead/protocol/daemon-link";
import type { SecretAnswer } from "@fairlead/protocol/secrets";
import type { DesiredState } from "@fairlead/protocol/workload";
import { type ControlLink, type LinkConnection, LinkRefused, LinkTakenOver } from "../link/control-link.ts";

/** What a test can do to the other side of a link, and see of it. */
export interface ControlPlaneDouble {
  readonly received: {
    readonly hellos: Hello[];
    readonly heartbeats: Heartbeat[];
    readonly observations: Observation[];
    readonly events: NodeEvent[];
  };
  /** What it answers to whoever asks for a secret; all others are missing. */
  readonly secrets: Map<string, SecretAnswer>;
  /** What it answers to whoever asks for a workload's token; all others have none. */
  readonly workerTokens: Map<string, WorkerTokenAnswer>;
  /** How often a subscription was opened. */
  subscriptions: number;
  readonly heartbeatSeconds: number;
  readonly serverTime: number;
  /** The current desired state goes to every subscriber, and to each new one at once. */
  push(state: DesiredState): void;
  /** The next attempt to connect is refused. */
  refuseNext(status: number, retryAfterSeconds: number | null): void;
  /** The next call (not subscription) fails. */
  failNextCall(): void;
  /** Cuts every connection. */
  drop(): void;
  /** Closes every connection as taken over by another daemon. */
  takeOver(): void;
}

/** A control plane in memory, on the daemon's side of the wire. */
export class FakeControlPlane implements ControlPlaneDouble, ControlLink {
  readonly received = {
    hellos: [] as Hello[],
    heartbeats: [] as Heartbeat[],
    observations: [] as Observation[],
    events: [] as NodeEvent[],
  };
  readonly secrets = new Map<string, SecretAnswer>();
  readonly workerTokens = new Map<string, WorkerTokenAnswer>();
  subscriptions = 0;
  connections = 0;
  attempts = 0;
  down = false;
  protocolVersion = 1;
  heartbeatSeconds = 10;
  /** The next heartbeat is answered so. */
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
