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

/** One open connection to the control plane. Every call has a time-out; none is ever sent twice by itself. */
export interface LinkConnection {
  hello(hello: Hello): Promise<HelloAnswer>;
  heartbeat(heartbeat: Heartbeat): Promise<HeartbeatAnswer>;
  observe(observation: Observation): Promise<void>;
  events(events: readonly NodeEvent[]): Promise<void>;
  /** One of this node's secrets, sealed to its key. */
  secret(request: SecretRequest): Promise<SecretAnswer>;
  /** A new token of one of this node's workloads. Only where both sides speak version 2. */
  workerToken(request: WorkerTokenRequest): Promise<WorkerTokenAnswer>;
  /** The desired state at once, then every change. Calling it again asks for the whole state again. */
  subscribe(onState: (state: DesiredState) => void): void;
  /** Resolves with the reason once the connection is gone, a failed subscription included. */
  readonly lost: Promise<Error>;
  close(): void;
}

export interface ControlLink {
  /** @throws LinkRefused, or Error where the platform host could not be reached. */
  connect(signal: AbortSignal): Promise<LinkConnection>;
}

/** Another link of this node has said hello since: of a second daemon, unless this one's own connection was half dead. */
export class LinkTakenOver extends Error {
  override readonly name = "LinkTakenOver";

  constructor() {
    super("another daemon has taken this node's place");
  }
}

/** The platform host answered, but did not open the link. */
export class LinkRefused extends Error {
  override readonly name = "LinkRefused";
  readonly status: number;
  readonly retryAfterMs: number | null;

  constructor(status: number, retryAfterMs: number | null) {
    super(`the platform host refused the link with status ${status}`);
    this.status = status;
    this.retryAfterMs = retryAfterMs;
  }
}
