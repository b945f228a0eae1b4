import type { AgentId, KeyId, NodeId, ProjectId, UserId } from "@fairlead/protocol/ids";
import type { KeyLimits } from "@fairlead/protocol/resources";

/** Who is calling, once a credential has been checked. A closed union: every guard switches on `kind`. */
export type Principal = UserPrincipal | NodePrincipal;
export type PrincipalKind = Principal["kind"];
export type PrincipalOf<K extends PrincipalKind> = Extract<Principal, { readonly kind: K }>;

export function isPrincipalOf<K extends PrincipalKind>(
  principal: Principal,
  kinds: readonly K[],
): principal is PrincipalOf<K> {
  return kinds.some((kind) => kind === principal.kind);
}

/** A person with a session token. */
export interface UserPrincipal {
  readonly kind: "user";
  readonly userId: UserId;
  readonly platformAdmin: boolean;
  /** Of the token that came; unset where the program acts for somebody without one. */
  readonly sessionId?: string;
  /** Set on calls that came by HTTP; the audit log keeps it. */
  readonly origin?: CallOrigin;
}

/** Where a call came from. */
export interface CallOrigin {
  readonly requestId: string;
  /** The client's IP address. */
  readonly address: string;
}

/** A daemon with its node's identity token. */
export interface NodePrincipal {
  readonly kind: "node";
  readonly nodeId: NodeId;
  readonly projectId: ProjectId;
  /** As a user's. */
  readonly origin?: CallOrigin;
}

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
