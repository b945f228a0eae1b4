import type {
  Heartbeat,
  HeartbeatAnswer,
  Hello,
  HelloAnswer,
  NodeEvent,
  Observation,
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
  events(events: readonly NodeEvent[]): Promise<void>;
  /** One of the node's own secrets, sealed to it. */
  secret(request: SecretRequest): Promise<SecretAnswer>;
  /** For the calls of an agent that runs on the node. */
  workerToken(request: WorkerTokenRequest): Promise<WorkerTokenAnswer>;
  desiredStates(signal: AbortSignal | undefined): AsyncIterable<DesiredState>;
  /** The connection is gone. */
  ended(): void;
}

export interface LinkService {
  /** @param end closes the connection, since a newer one of the same node has said hello. */
  connect(nodeId: string, end: () => void): LinkSession;
}
