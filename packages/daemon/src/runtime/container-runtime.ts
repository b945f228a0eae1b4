import type { WorkloadSpec } from "@fairlead/protocol/workload";

/** The container engine of this machine, as far as the daemon needs one. */

/** Whose containers these are. Only what carries both labels is ever touched (gpustack#3346). */
export interface Owner {
  readonly installationId: string;
  readonly nodeId: string;
}

export type ContainerState =
  | "created"
  | "running"
  | "paused"
  | "restarting"
  | "removing"
  | "exited"
  | "dead"
  /** The engine listed it, but could not say more. */
  | "unknown";

export interface Container {
  readonly id: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly state: ContainerState;
  /** The reference that it was created from. */
  readonly image: string;
  readonly imageId: string;
  /** Where its port is published on 127.0.0.1, or null. */
  readonly hostPort: number | null;
  /** RFC 3339; null before its first start. */
  readonly startedAt: string | null;
  readonly finishedAt: string | null;
  readonly exitCode: number;
  readonly outOfMemory: boolean;
  /** The engine's own words where a start failed. */
  readonly error: string;
}

export interface ImageFacts {
  readonly id: string;
  /** `name@sha256:…` for every registry that it was pulled from or pushed to. */
  readonly repoDigests: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
}

export interface RuntimeVersion {
  readonly version: string;
  /** Where the engine keeps images and volumes. */
  readonly rootFolder: string;
}

/** A container to be: everything is decided. */
export interface ContainerPlan {
  readonly spec: WorkloadSpec;
  readonly name: string;
  readonly owner: Owner;
  readonly projectId: string;
  readonly generation: number;
}

/** @param percent of the bytes known so far, 0 to 100. */
export type PullProgress = (percent: number) => void;

export interface PullOptions {
  readonly onProgress: PullProgress;
  /** No news from the engine for so long ends the pull (amazon-ecs-agent#1249: a plain total limit hung for two hours). */
  readonly inactivityMs: number;
  readonly signal: AbortSignal;
}

/** Methods throw RuntimeError only. Start, stop and remove are harmless where they have been done already. */
export interface ContainerRuntime {
  version(): Promise<RuntimeVersion>;
  /** All containers of this owner, in every state. */
  list(owner: Owner): Promise<Container[]>;
  /** A container by name or id, whoever owns it; null where there is none. */
  inspect(nameOrId: string): Promise<Container | null>;
  /** An image that is present here, by reference or id; null where there is none. */
  image(reference: string): Promise<ImageFacts | null>;
  pull(reference: string, options: PullOptions): Promise<void>;
  /** @returns the container's id. */
  create(plan: ContainerPlan): Promise<string>;
  start(id: string): Promise<void>;
  /** Asks the container to end, and kills it after the grace. */
  stop(id: string, graceSeconds: number): Promise<void>;
  remove(id: string): Promise<void>;
  /** The last lines of its output, newest last. */
  logs(id: string, tail: number): Promise<string>;
  /** Calls whenever containers of this owner may have changed, until the signal aborts. A hint only: lists are the truth. */
  watch(owner: Owner, onChange: () => void, signal: AbortSignal): void;
}

export type RuntimeErrorKind =
  /** The engine cannot be asked: nothing may be concluded (nomad#1859). */
  "unavailable" | "not-found" | "conflict" | "no-such-image" | "pull-failed" | "rejected";

export class RuntimeError extends Error {
  override readonly name = "RuntimeError";
  readonly kind: RuntimeErrorKind;

  constructor(kind: RuntimeErrorKind, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.kind = kind;
  }
}
