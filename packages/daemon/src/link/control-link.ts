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

/** One connection to the control plane. Every call has a timeout; none is retried automatically. */
export interface LinkConnection {
  hello(hello: Hello): Promise<HelloAnswer>;
  heartbeat(heartbeat: Heartbeat): Promise<HeartbeatAnswer>;
  observe(observation: Observation): Promise<void>;
  events(events: readonly ReportedNodeEvent[]): Promise<void>;
  /** A secret, encrypted to this node's key. */
  secret(request: SecretRequest): Promise<SecretAnswer>;
  /** Gets a new token for a workload. Requires link version 2. */
  workerToken(request: WorkerTokenRequest): Promise<WorkerTokenAnswer>;
  /** Announces that this daemon is stopping. Older control planes do not support it. */
  goodbye(): Promise<void>;
  /** Delivers the desired state immediately, then every change. Another call requests the whole state again. */
  subscribe(onState: (state: DesiredState) => void): void;
  /** Resolves with the reason when the connection is lost or a subscription fails. */
  readonly lost: Promise<Error>;
  close(): void;
}

export interface ControlLink {
  /** @throws LinkRefused, or Error if the platform host is unreachable. */
  connect(signal: AbortSignal): Promise<LinkConnection>;
}

/** Another link of this node has connected: a second daemon, or this one's own reconnect. */
export class LinkTakenOver extends Error {
  override readonly name = "LinkTakenOver";

  constructor() {
    super("another daemon connected with this node's identity");
  }
}

/** The daemon exceeded the control plane's limits. */
export class LinkFlooded extends Error {
  override readonly name = "LinkFlooded";

  constructor(reason: string) {
    super(`the control plane closed the link: ${reason}`);
  }
}

/** The control plane rejected a call. `busy`: retry after the delay; `invalid`: do not retry. */
export class CallRejected extends Error {
  override readonly name = "CallRejected";
  readonly kind: "busy" | "invalid";
  readonly retryAfterMs: number;

  constructor(kind: "busy" | "invalid", message: string, retryAfterMs = 0) {
    super(message);
    this.kind = kind;
    this.retryAfterMs = retryAfterMs;
  }
}

/** The platform host responded but did not open the link. */
export class LinkRefused extends Error {
  override readonly name = "LinkRefused";
  readonly status: number;
  readonly retryAfterMs: number | null;

  constructor(status: number, retryAfterMs: number | null) {
    super(`the platform host rejected the link with status ${status}`);
    this.status = status;
    this.retryAfterMs = retryAfterMs;
  }
}
