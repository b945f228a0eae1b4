import type { NodeId, ProjectId, UserId } from "@fairlead/protocol/values/ids";

/** The authenticated caller. A closed union: every guard switches on `kind`. */
export type Principal = UserPrincipal | NodePrincipal;
export type PrincipalKind = Principal["kind"];
export type PrincipalOf<K extends PrincipalKind> = Extract<Principal, { readonly kind: K }>;

export function isPrincipalOf<K extends PrincipalKind>(
  principal: Principal,
  kinds: readonly K[],
): principal is PrincipalOf<K> {
  return kinds.some((kind) => kind === principal.kind);
}

/** A user with a session token. */
export interface UserPrincipal {
  readonly kind: "user";
  readonly userId: UserId;
  readonly platformAdmin: boolean;
  /** The session of the token; unset if the program acts for a user without one. */
  readonly sessionId?: string;
  /** Set on HTTP requests; stored in the audit log. */
  readonly origin?: CallOrigin;
}

/** The origin of a request. */
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
  /** As for users. */
  readonly origin?: CallOrigin;
}
