import type { Id } from "@fairlead/protocol/ids";
import type { InferenceCaller } from "../auth/principal.ts";

/** What the inference host needs of the rest of the control plane. */

export interface CallerAuthenticator {
  /**
   * @param secret what the caller sent as its bearer token.
   * @throws DomainError `invalid_credential` or `expired_credential` when checked and bad, `unavailable` when it cannot be checked.
   */
  authenticate(secret: string): Promise<InferenceCaller>;
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
