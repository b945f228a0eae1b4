import type { Id } from "@fairlead/protocol/ids";
import type { InferenceCaller } from "../auth/principal.ts";
import type { ChatQuirks } from "./bridge/bridge-call.ts";
import type { Dialect } from "./dialect.ts";

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
  /** What it speaks well, and how its chat dialect differs. */
  readonly protocols: readonly Dialect[];
  readonly chat: ChatQuirks;
}

export interface EngineDirectory {
  list(projectId: Id<"project">): Promise<readonly EngineTarget[]>;
}
