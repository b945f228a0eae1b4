import type { WorkloadSpec } from "@fairlead/protocol/workload";
import type { ImageStart } from "./own-init.ts";

/** Interface of the container engine. */

/** Owner labels. Only containers with both are ever changed (gpustack#3346). */
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
  /** Listed by the engine, but could not be inspected. */
  | "unknown";

export interface Container {
  readonly id: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly state: ContainerState;
  /** Image reference that it was created from. */
  readonly image: string;
  readonly imageId: string;
  /** Name of its network. */
  readonly network: string;
  /** Host port on 127.0.0.1, or null. */
  readonly hostPort: number | null;
  /** RFC 3339; null before its first start. */
  readonly startedAt: string | null;
  readonly finishedAt: string | null;
  readonly exitCode: number;
  readonly outOfMemory: boolean;
  /** The engine's message if the start failed. */
  readonly error: string;
}

export interface ImageFacts {
  readonly id: string;
  /** `name@sha256:…` per registry that it was pulled from or pushed to. */
  readonly repoDigests: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
  readonly start: ImageStart;
  /** `name:tag`; empty if all tags moved to other images. */
  readonly tags: readonly string[];
}

/** The network of one workload. */
export interface Network {
  readonly id: string;
  readonly name: string;
  readonly workloadId: string;
  /** This machine's address in the network. */
  readonly gateway: string;
  /** Subnet of its containers, such as `198.19.0.0/29`. */
  readonly subnet: string;
}

/** Without a gateway address, containers cannot reach the daemon. */
export function noGateway(network: string): string {
  return `Docker reports no gateway for the network ${network}; stop its containers and remove it (docker network rm ${network}) to have it recreated`;
}

/** A network to create. */
export interface NetworkPlan {
  readonly name: string;
  readonly owner: Owner;
  readonly workloadId: string;
  readonly internet: boolean;
}

export interface RuntimeVersion {
  /** Unique ID of the engine. */
  readonly id: string;
  readonly version: string;
  /** Folder of images and volumes. */
  readonly rootFolder: string;
  /** Whether the engine pulls images through a proxy. */
  readonly usesProxy: boolean;
}

/** Secrets for a container. Must not appear in logs or errors. */
export interface ContainerSecrets {
  /** Host folder to mount at `/run/secrets`, or null. */
  readonly folder: string | null;
  /** Values of secrets passed as environment variables. */
  readonly env: Readonly<Record<string, string>>;
}

/** A container to create. */
export interface ContainerPlan {
  readonly spec: WorkloadSpec;
  readonly name: string;
  readonly owner: Owner;
  readonly projectId: string;
  readonly generation: number;
  readonly secrets: ContainerSecrets | null;
}

export interface PullProgress {
  /** Percent of the bytes known so far, 0 to 100. */
  readonly percent: number;
  /** Known remaining bytes, compressed. */
  readonly pendingBytes: number;
}

/** Processes and threads, including zombies. */
export interface ProcessCount {
  readonly count: number;
  readonly limit: number;
}

export interface RegistryCredentials {
  readonly username: string;
  readonly password: string;
}

/** Returns the registry credentials for a workload's image; null pulls anonymously. @throws Error if they are missing. */
export type RegistryAuth = (workload: WorkloadSpec) => Promise<RegistryCredentials | null>;

export interface PullOptions {
  readonly credentials: RegistryCredentials | null;
  readonly onProgress: (progress: PullProgress) => void;
  /** A pull fails after this time without progress (amazon-ecs-agent#1249: a total limit hung for two hours). */
  readonly inactivityMs: number;
  readonly signal: AbortSignal;
}

export interface LogOptions {
  /** RFC 3339; null for all available lines. */
  readonly since: string | null;
  /** Number of lines from the end; null for all. */
  readonly tail: number | null;
  /** Whether to wait for more lines until the container exits. */
  readonly follow: boolean;
}

export interface LogLine {
  /** RFC 3339 with nanoseconds, from the engine. */
  readonly at: string;
  readonly stream: "stdout" | "stderr";
  /** Without its line break. */
  readonly text: string;
}

/** Methods throw RuntimeError only. Start, stop and remove are idempotent. */
export interface ContainerRuntime {
  version(): Promise<RuntimeVersion>;
  /** Lists the owner's networks. */
  networks(owner: Owner): Promise<Network[]>;
  /** Idempotent by name. @throws RuntimeError `no-room` if no subnet is free */
  addNetwork(plan: NetworkPlan): Promise<void>;
  /** Idempotent. @throws RuntimeError `rejected` while a container uses it */
  removeNetwork(id: string): Promise<void>;
  /** Lists the owner's containers in any state. */
  list(owner: Owner): Promise<Container[]>;
  /** Any container by name or ID, or null. */
  inspect(nameOrId: string): Promise<Container | null>;
  /** A local image by reference or ID, or null. */
  image(reference: string): Promise<ImageFacts | null>;
  pull(reference: string, options: PullOptions): Promise<void>;
  /** Image IDs of all containers, of any owner and in any state. */
  imagesInUse(): Promise<ReadonlySet<string>>;
  /** Removes a name of an image; removing the last name or the ID deletes the image. @throws RuntimeError `conflict` if it is in use */
  removeImage(reference: string): Promise<void>;
  /** @returns the container's ID. */
  create(plan: ContainerPlan): Promise<string>;
  /** The numeric user ID it runs as. @throws RuntimeError `rejected` if the image's user does not exist in it */
  userOf(id: string): Promise<number>;
  start(id: string): Promise<void>;
  /** Of a running container; null if unknown. */
  processes(id: string): Promise<ProcessCount | null>;
  /** Stops the container; kills it after the grace period. */
  stop(id: string, graceSeconds: number): Promise<void>;
  remove(id: string): Promise<void>;
  /** The last lines of its logs, newest last. */
  logs(id: string, tail: number): Promise<string>;
  /** Its logs line by line, oldest first. Ends with the container or on abort. */
  followLogs(id: string, options: LogOptions, signal: AbortSignal): AsyncIterable<LogLine>;
  /** Calls back when the owner's containers may have changed, until abort. Only a hint to list again. */
  watch(owner: Owner, onChange: () => void, signal: AbortSignal): void;
}

export type RuntimeErrorKind =
  /** The engine does not respond; nothing may be concluded (nomad#1859). */
  "unavailable" | "not-found" | "conflict" | "no-such-image" | "pull-failed" | "no-room" | "rejected";

interface RuntimeErrorOptions {
  readonly status?: number | null;
  readonly said?: string;
  readonly cause?: unknown;
}

export class RuntimeError extends Error {
  override readonly name = "RuntimeError";
  readonly kind: RuntimeErrorKind;
  /** HTTP status, or null without a response. */
  readonly status: number | null;
  /** The engine's original message, if `message` differs. */
  readonly said: string;

  /** @param message complete, without the need to read the cause. */
  constructor(kind: RuntimeErrorKind, message: string, { status = null, said = "", cause }: RuntimeErrorOptions = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.kind = kind;
    this.status = status;
    this.said = said;
  }
}
