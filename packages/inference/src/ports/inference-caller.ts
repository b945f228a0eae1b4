import type { KeyLimits } from "@fairlead/protocol/resources";
import type { AgentId, KeyId, NodeId, ProjectId, UserId } from "@fairlead/protocol/values/ids";

/** Who calls a model; a closed union too. */
export type InferenceCaller = KeyPrincipal | WorkerPrincipal | MemberPrincipal;

/** A program with a project key. */
export interface KeyPrincipal {
  readonly kind: "key";
  readonly keyId: KeyId;
  readonly projectId: ProjectId;
  /** Who made the key. */
  readonly userId: UserId;
  readonly limits: KeyLimits;
}

/** An agent on a node, with a worker-plane token. */
export interface WorkerPrincipal {
  readonly kind: "worker";
  readonly agentId: AgentId;
  readonly nodeId: NodeId;
  readonly projectId: ProjectId;
  /** Its own, as a key's. */
  readonly limits: KeyLimits;
}

/** A member of a project who chats: with the project's access, without a key. */
export interface MemberPrincipal {
  readonly kind: "member";
  readonly userId: UserId;
  readonly projectId: ProjectId;
}
