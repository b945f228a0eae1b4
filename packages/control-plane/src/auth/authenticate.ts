import { BOOTSTRAP_TOKEN_PREFIX } from "@fairlead/protocol/enrollment";
import { DomainError } from "@fairlead/protocol/errors";
import type { NodeId, ProjectId, UserId } from "@fairlead/protocol/ids";
import { bearerToken } from "./bearer.ts";
import { PROJECT_KEY_PREFIX } from "./credential-prefixes.ts";
import {
  isPrincipalOf,
  type NodePrincipal,
  type Principal,
  type PrincipalKind,
  type PrincipalOf,
  type UserPrincipal,
} from "./principal.ts";
import type { TokenClaims } from "./tokens.ts";

/**
 * Who sent this `Authorization` header, if it is one of the kinds that may.
 * @throws DomainError `invalid_credential`, `expired_credential`; `unavailable` when it cannot be checked.
 */
export type Authenticate = <K extends PrincipalKind>(
  authorization: string | undefined,
  kinds: readonly K[],
) => Promise<PrincipalOf<K>>;

/** Sign-in sessions, as far as a credential's check needs them; the users service. */
export interface SignInSessions {
  /** @returns null when the session has ended or its user is gone. */
  find(sessionId: string): MaybePromise<{ readonly userId: string; readonly platformAdmin: boolean } | null>;
}

/** Enrolled nodes, as far as a credential's check needs them; the nodes service. */
export interface NodeIdentities {
  /** @returns null for a node that is unknown, not enrolled, or being deleted. */
  find(nodeId: string): MaybePromise<NodeIdentity | null>;
}

export interface NodeIdentity {
  readonly projectId: string;
  readonly signingKeyThumbprint: string;
  /** The node lives on for as long as its running calls do, but its workloads begin none. */
  readonly projectDeleting?: boolean;
}

export interface TokenVerifier {
  /** @throws DomainError `expired_credential`, `invalid_credential` */
  verify(token: string): MaybePromise<TokenClaims>;
}

/** What is remembered is there at once. */
type MaybePromise<T> = T | Promise<T>;

export interface AuthenticatorOptions {
  readonly tokens: TokenVerifier;
  readonly sessions: SignInSessions;
  readonly nodes: NodeIdentities;
  /** Named to callers who bring a project key here. */
  readonly modelsUrl: string;
}

const CREDENTIAL_NAMES: Record<PrincipalKind, string> = { user: "session token", node: "node identity token" };

/** Sessions and nodes are asked on every call, and are a second old at most (design §5, Revocation). */
export function createAuthenticate(options: AuthenticatorOptions): Authenticate {
  return async (authorization, kinds) => {
    const token = bearerToken(authorization);
    if (token === null) throw invalid(`Send \`Authorization: Bearer <${nameOf(kinds)}>\`.`);
    refuseOtherCredentials(token, options.modelsUrl);
    const claims = await options.tokens.verify(token);
    if (claims.audience === "inference") {
      const message = `This is a worker-plane token; it works on the inference host, ${options.modelsUrl}. Send a ${nameOf(kinds)} here.`;
      throw invalid(message);
    }
    if (claims.audience === "workload") {
      const message = `This is a workload-connect token; it works at the \`gatewayUrl\` that came with it. Send a ${nameOf(kinds)} here.`;
      throw invalid(message);
    }
    const principal = claims.audience === "node" ? nodeOf(claims) : userOf(claims);
    if (!isPrincipalOf(principal, kinds)) {
      throw invalid(`This call takes a ${nameOf(kinds)}, not a ${CREDENTIAL_NAMES[principal.kind]}.`);
    }
    return confirm(principal, claims, options);
  };
}

type PlatformClaims = Exclude<TokenClaims, { readonly audience: "inference" | "workload" }>;

async function confirm<P extends Principal>(
  principal: P,
  claims: PlatformClaims,
  { sessions, nodes }: AuthenticatorOptions,
): Promise<P> {
  if (claims.audience === "node") {
    const node = await nodes.find(claims.nodeId);
    const same = node?.projectId === claims.projectId && node.signingKeyThumbprint === claims.keyThumbprint;
    if (!same) throw invalid("This node's identity was revoked: the node was deleted or has enrolled anew.");
    return principal;
  }
  const session = await sessions.find(claims.sessionId);
  if (session?.userId !== claims.userId) throw invalid("This session has ended; sign in again.");
  return { ...principal, platformAdmin: session.platformAdmin };
}

function refuseOtherCredentials(token: string, modelsUrl: string): void {
  if (token.startsWith(PROJECT_KEY_PREFIX)) {
    throw invalid(`This is a project key; it works on the inference host, ${modelsUrl}. Send a session token here.`);
  }
  if (token.startsWith(BOOTSTRAP_TOKEN_PREFIX)) {
    throw invalid("This is a bootstrap token; all it can do is enrol its node, at POST /v1/nodes/{id}/enroll.");
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
