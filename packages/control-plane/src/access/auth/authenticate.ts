import { bearerToken } from "@fairlead/hosting/requests/bearer";
import { BOOTSTRAP_TOKEN_PREFIX } from "@fairlead/protocol/enrollment";
import { DomainError } from "@fairlead/protocol/errors";
import type { NodeId, ProjectId, UserId } from "@fairlead/protocol/values/ids";
import { PROJECT_KEY_PREFIX } from "./credential-prefixes.ts";
import {
  isPrincipalOf,
  type NodePrincipal,
  type Principal,
  type PrincipalKind,
  type PrincipalOf,
  type UserPrincipal,
} from "./principal.ts";
import type { TokenClaims } from "./tokens/tokens.ts";

/**
 * Authenticates an `Authorization` header, if its kind is accepted.
 * @throws DomainError `invalid_credential`, `expired_credential`; `unavailable` if it cannot be checked.
 */
export type Authenticate = <K extends PrincipalKind>(
  authorization: string | undefined,
  kinds: readonly K[],
) => Promise<PrincipalOf<K>>;

/** Sign-in sessions, implemented by the users service. */
export interface SignInSessions {
  /** @returns null if the session has ended or its user was deleted. */
  find(sessionId: string): MaybePromise<{ readonly userId: string; readonly platformAdmin: boolean } | null>;
}

/** Enrolled nodes, implemented by the nodes service. */
export interface NodeIdentities {
  /** @returns null for a node that is unknown, not enrolled, or being deleted. */
  find(nodeId: string): MaybePromise<NodeIdentity | null>;
}

export interface NodeIdentity {
  readonly projectId: string;
  readonly signingKeyThumbprint: string;
  /** The node finishes its running calls, but its workloads start no new ones. */
  readonly projectDeleting?: boolean;
}

export interface TokenVerifier {
  /** @throws DomainError `expired_credential`, `invalid_credential` */
  verify(token: string): MaybePromise<TokenClaims>;
}

/** Returns cached results synchronously. */
type MaybePromise<T> = T | Promise<T>;

export interface AuthenticatorOptions {
  readonly tokens: TokenVerifier;
  readonly sessions: SignInSessions;
  readonly nodes: NodeIdentities;
  /** Shown to callers who send a project key here. */
  readonly modelsUrl: string;
}

const CREDENTIAL_NAMES: Record<PrincipalKind, string> = { user: "session token", node: "node identity token" };

/** Sessions and nodes are read on every call, from a cache of at most a second. */
export function createAuthenticate(options: AuthenticatorOptions): Authenticate {
  return async (authorization, kinds) => {
    const { principal, claims } = await verify(authorization, kinds, options);
    return confirm(principal, claims, options);
  };
}

/** Checks a node's credential in two steps, so that shared limits can be charged in between. */
export interface NodeCredentials {
  /** Checks only the signature, without a query. @throws DomainError `expired_credential`, `invalid_credential` */
  verify(authorization: string | undefined): Promise<VerifiedNode>;
  /** Checks that the node still has this identity. @throws DomainError `invalid_credential`; `unavailable` if it cannot be checked. */
  confirm(node: VerifiedNode): Promise<NodePrincipal>;
}

export type VerifiedNode = Verified<NodePrincipal>;

export function createNodeCredentials(options: AuthenticatorOptions): NodeCredentials {
  return {
    verify: (authorization) => verify(authorization, ["node"], options),
    confirm: ({ principal, claims }) => confirm(principal, claims, options),
  };
}

interface Verified<P extends Principal> {
  readonly principal: P;
  readonly claims: PlatformClaims;
}

type PlatformClaims = Exclude<TokenClaims, { readonly audience: "inference" | "workload" }>;

async function verify<K extends PrincipalKind>(
  authorization: string | undefined,
  kinds: readonly K[],
  { tokens, modelsUrl }: AuthenticatorOptions,
): Promise<Verified<PrincipalOf<K>>> {
  const token = bearerToken(authorization);
  if (token === null) throw invalid(`Send \`Authorization: Bearer <${nameOf(kinds)}>\`.`);
  refuseOtherCredentials(token, modelsUrl);
  const claims = await tokens.verify(token);
  if (claims.audience === "inference") {
    const message = `This is a worker-plane token, which works on the inference host, ${modelsUrl}. Send a ${nameOf(kinds)} here.`;
    throw invalid(message);
  }
  if (claims.audience === "workload") {
    const message = `This is a workload-connect token, which works at the \`gatewayUrl\` returned with it. Send a ${nameOf(kinds)} here.`;
    throw invalid(message);
  }
  const principal = claims.audience === "node" ? nodeOf(claims) : userOf(claims);
  if (!isPrincipalOf(principal, kinds)) {
    throw invalid(`This call requires a ${nameOf(kinds)}, not a ${CREDENTIAL_NAMES[principal.kind]}.`);
  }
  return { principal, claims };
}

async function confirm<P extends Principal>(
  principal: P,
  claims: PlatformClaims,
  { sessions, nodes }: AuthenticatorOptions,
): Promise<P> {
  if (claims.audience === "node") {
    const node = await nodes.find(claims.nodeId);
    const same = node?.projectId === claims.projectId && node.signingKeyThumbprint === claims.keyThumbprint;
    if (!same) throw invalid("This node's identity was revoked because the node was deleted or enrolled again.");
    return principal;
  }
  const session = await sessions.find(claims.sessionId);
  if (session?.userId !== claims.userId) throw invalid("This session has ended. Sign in again.");
  return { ...principal, platformAdmin: session.platformAdmin };
}

function refuseOtherCredentials(token: string, modelsUrl: string): void {
  if (token.startsWith(PROJECT_KEY_PREFIX)) {
    throw invalid(`This is a project key, which works on the inference host, ${modelsUrl}. Send a session token here.`);
  }
  if (token.startsWith(BOOTSTRAP_TOKEN_PREFIX)) {
    throw invalid("This is a bootstrap token. It can only enroll its node, at POST /v1/nodes/{id}/enroll.");
  }
}

function userOf(claims: TokenClaims & { readonly audience: "platform" }): UserPrincipal {
  return { kind: "user", userId: claims.userId as UserId, platformAdmin: false, sessionId: claims.sessionId };
}

function nodeOf(claims: TokenClaims & { readonly audience: "node" }): NodePrincipal {
  return { kind: "node", nodeId: claims.nodeId as NodeId, projectId: claims.projectId as ProjectId };
}

function nameOf(kinds: readonly PrincipalKind[]): string {
  return kinds.map((kind) => CREDENTIAL_NAMES[kind]).join(" or ");
}

function invalid(message: string): DomainError {
  return new DomainError("invalid_credential", message);
}
