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
  /** `name:tag`; none where every tag has moved on to another image. */
  readonly tags: readonly string[];
}

/** The network of containers that name none. */
export interface Bridge {
  /** This machine's address in it. */
  readonly address: string;
  /** `172.17.0.0/16`: where its containers are. */
  readonly subnet: string;
}

export interface RuntimeVersion {
  readonly version: string;
  /** Where the engine keeps images and volumes. */
  readonly rootFolder: string;
}

/** What a container gets beside its spec. No log and no error may show it. */
export interface ContainerSecrets {
  /** The folder of this machine that it finds at `/run/secrets`, or null. */
  readonly folder: string | null;
  /** Values of secrets that it takes as variables. */
  readonly env: Readonly<Record<string, string>>;
}

/** A container to be: everything is decided. */
export interface ContainerPlan {
  readonly spec: WorkloadSpec;
  readonly name: string;
  readonly owner: Owner;
  readonly projectId: string;
  readonly generation: number;
  readonly secrets: ContainerSecrets | null;
}

export interface PullProgress {
  /** Of the bytes known so far, 0 to 100. */
  readonly percent: number;
  /** Bytes that are known to come still, packed. */
  readonly pendingBytes: number;
}

export interface RegistryCredentials {
  readonly username: string;
  readonly password: string;
}

/** Where the credentials for a workload's image come from; null: it is pulled as anybody. @throws Error where they should be there and are not. */
export type RegistryAuth = (workload: WorkloadSpec) => Promise<RegistryCredentials | null>;

export interface PullOptions {
  readonly credentials: RegistryCredentials | null;
  readonly onProgress: (progress: PullProgress) => void;
  /** No news from the engine for so long ends the pull (amazon-ecs-agent#1249: a plain total limit hung for two hours). */
  readonly inactivityMs: number;
  readonly signal: AbortSignal;
}

export interface LogOptions {
  /** RFC 3339; null: from the first line that is kept. */
  readonly since: string | null;
  /** So many of the last lines; null: all. */
  readonly tail: number | null;
  /** Whether to wait for what is yet to be written, until the container ends. */
  readonly follow: boolean;
}

export interface LogLine {
  /** RFC 3339 with nanoseconds, as the engine noted it. */
  readonly at: string;
  readonly stream: "stdout" | "stderr";
  /** Without its line break. */
  readonly text: string;
}

/** Methods throw RuntimeError only. Start, stop and remove are harmless where they have been done already. */
export interface ContainerRuntime {
  version(): Promise<RuntimeVersion>;
  /** Null where the engine has none. */
  bridge(): Promise<Bridge | null>;
  /** All containers of this owner, in every state. */
  list(owner: Owner): Promise<Container[]>;
  /** A container by name or id, whoever owns it; null where there is none. */
  inspect(nameOrId: string): Promise<Container | null>;
  /** An image that is present here, by reference or id; null where there is none. */
  image(reference: string): Promise<ImageFacts | null>;
  pull(reference: string, options: PullOptions): Promise<void>;
  /** The ids of the images of all containers, whoever owns them, in every state. */
  imagesInUse(): Promise<ReadonlySet<string>>;
  /** Takes one name from an image; the last name, or its id, takes the image itself. @throws RuntimeError `conflict` where it is in use */
  removeImage(reference: string): Promise<void>;
  /** @returns the container's id. */
  create(plan: ContainerPlan): Promise<string>;
  /** The numeric user that it runs as. @throws RuntimeError `rejected` where the image names one that it does not have */
  userOf(id: string): Promise<number>;
  start(id: string): Promise<void>;
  /** Asks the container to end, and kills it after the grace. */
  stop(id: string, graceSeconds: number): Promise<void>;
  remove(id: string): Promise<void>;
  /** The last lines of its output, newest last. */
  logs(id: string, tail: number): Promise<string>;
  /** Its output line by line, oldest first. Ends with the container, or when the signal aborts. */
  followLogs(id: string, options: LogOptions, signal: AbortSignal): AsyncIterable<LogLine>;
  /** Calls whenever containers of this owner may have changed, until the signal aborts. A hint only: lists are the truth. */
  watch(owner: Owner, onChange: () => void, signal: AbortSignal): void;
}

export type RuntimeErrorKind =
  /** The engine cannot be asked: nothing may be concluded (nomad#1859). */
  "unavailable" | "not-found" | "conflict" | "no-such-image" | "pull-failed" | "no-room" | "rejected";

export class RuntimeError extends Error {
  override readonly name = "RuntimeError";
  readonly kind: RuntimeErrorKind;

  constructor(kind: RuntimeErrorKind, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.kind = kind;
  }
}
