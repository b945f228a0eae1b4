import type { Dialect } from "@fairlead/dialects/calls/dialect";
import type { ChatQuirks } from "@fairlead/dialects/convert/bridge-call";
import type { Id } from "@fairlead/protocol/values/ids";
import type { InferenceCaller } from "./inference-caller.ts";

/** What the inference host needs of the rest of the control plane. */

export interface CallerAuthenticator {
  /**
   * @param secret what the caller sent as its bearer token.
   * @throws DomainError `invalid_credential` or `expired_credential` when checked and bad, `unavailable` when it cannot be checked.
   */
  authenticate(secret: string): Promise<InferenceCaller>;
}

/** Who pays for the room that a project's calls take. */
export interface ProjectOwners {
  /** @returns the user who owns the project; without a promise where it is known, since that is on every call's way. */
  ownerOf(projectId: string): string | Promise<string>;
}

/** A node's engine, as far as its last reports tell. */
export interface EngineTarget {
  readonly nodeId: string;
  /** The provider part of its models' names, unique in the project. */
  readonly identifier: string;
  /** The engine's workload name on the node. */
  readonly workload: string;
  /** Why it takes no calls, for people; null where it does. */
  readonly absence: string | null;
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
