import type { Id } from "@fairlead/protocol/ids";

/** What the inference host needs of the rest of the control plane. */

export interface KeyOwner {
  readonly keyId: Id<"key">;
  readonly projectId: Id<"project">;
}

export interface KeyAuthenticator {
  /**
   * @param secret the whole project key as the caller sent it.
   * @throws DomainError `invalid_credential` or `expired_credential` when checked and bad, `unavailable` when it cannot be checked.
   */
  authenticate(secret: string): Promise<KeyOwner>;
}

/** A node's engine, as far as its last reports tell. */
export interface EngineTarget {
  readonly nodeId: string;
  /** The provider part of its models' names, unique in the project. */
  readonly identifier: string;
  /** The engine's workload name on the node. */
  readonly workload: string;
  readonly ready: boolean;
  /** Model names without the provider part. */
  readonly models: readonly string[];
  /** Unix milliseconds: since when it serves them. */
  readonly since: number;
}

export interface EngineDirectory {
  /** @returns null for an identifier that names no node of this project. */
  find(projectId: Id<"project">, identifier: string): Promise<EngineTarget | null>;
  list(projectId: Id<"project">): Promise<readonly EngineTarget[]>;
}
