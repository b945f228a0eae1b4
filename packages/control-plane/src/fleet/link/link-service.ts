import type {
  Heartbeat,
  HeartbeatAnswer,
  Hello,
  HelloAnswer,
  Observation,
  ReportedNodeEvent,
  WorkerTokenAnswer,
  WorkerTokenRequest,
} from "@fairlead/protocol/daemon-link";
import type { SecretAnswer, SecretRequest } from "@fairlead/protocol/secrets";
import type { DesiredState } from "@fairlead/protocol/workload";

/** One connected daemon, as the link's router sees it. */
export interface LinkSession {
  hello(hello: Hello): Promise<HelloAnswer>;
  heartbeat(heartbeat: Heartbeat): Promise<HeartbeatAnswer>;
  observe(observation: Observation): Promise<void>;
  events(events: readonly ReportedNodeEvent[]): Promise<void>;
  /** One of the node's own secrets, sealed to it. */
  secret(request: SecretRequest): Promise<SecretAnswer>;
  /** For the calls of an agent that runs on the node. */
  workerToken(request: WorkerTokenRequest): Promise<WorkerTokenAnswer>;
  /** The daemon is being stopped, and says nothing more. */
  goodbye(): Promise<void>;
  /** One at a time: a second subscription ends the first. */
  desiredStates(signal: AbortSignal | undefined): AsyncIterable<DesiredState>;
  /** The connection was closed because more came over it than a daemon sends. */
  flooded(reason: string): void;
  /** The connection is gone. */
  ended(): void;
}

export interface LinkService {
  connect(nodeId: string, end: EndLink): LinkSession;
}

/** Closes the connection. */
export type EndLink = (why: LinkEnd) => void;

/** `taken-over`: a newer link of the same node has said hello. `silent`: this one has not. */
export type LinkEnd = "taken-over" | "silent";
