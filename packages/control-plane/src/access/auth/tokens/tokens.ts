import { CLOCK_SKEW_SECONDS } from "@fairlead/protocol/enrollment";
import { DomainError } from "@fairlead/protocol/errors";
import type { Clock } from "@fairlead/protocol/values/clock";
import {
  type ConnectClaims,
  connectClaimsSchema,
  workloadAudience,
  workloadOf,
} from "@fairlead/protocol/workload-connect";
import {
  createLocalJWKSet,
  errors,
  type JSONWebKeySet,
  type JWTPayload,
  type JWTVerifyGetKey,
  type JWTVerifyResult,
  jwtVerify,
  SignJWT,
} from "jose";
import { z } from "zod";
import { type KeyRing, SIGNING_ALGORITHM } from "../sealing/key-ring.ts";

/** This installation's signed JWTs, distinguished by audience. */

const sessionClaims = z.object({ aud: z.literal("platform"), sub: z.string(), sid: z.string() });
const nodeClaims = z.object({ aud: z.literal("node"), sub: z.string(), project: z.string(), key: z.string() });
const workerClaims = z.object({
  aud: z.literal("inference"),
  sub: z.string(),
  node: z.string(),
  project: z.string(),
  key: z.string(),
  run: z.int(),
});
const namedClaims = z.discriminatedUnion("aud", [sessionClaims, nodeClaims, workerClaims]);
const claimsSchema = z.union([namedClaims, connectClaimsSchema]);

/** Claims of a valid token. Whether its session or node still exists is checked by `authenticate`. */
export type TokenClaims =
  | { readonly audience: "platform"; readonly userId: string; readonly sessionId: string }
  | {
      readonly audience: "node";
      readonly nodeId: string;
      readonly projectId: string;
      /** RFC 7638 thumbprint of the node's signing key: enrolling again invalidates older tokens. */
      readonly keyThumbprint: string;
    }
  | {
      readonly audience: "inference";
      readonly agentId: string;
      readonly nodeId: string;
      readonly projectId: string;
      /** Ends with the node's identity. */
      readonly keyThumbprint: string;
      /** The run of the agent that it was issued for. */
      readonly run: number;
    }
  | WorkloadClaims;

/** A workload-connect token: one workload of one node. */
export interface WorkloadClaims {
  readonly audience: "workload";
  readonly nodeId: string;
  readonly workload: string;
  readonly projectId: string;
  readonly keyThumbprint: string;
  /** A user in a session, or the node itself. */
  readonly holder: { readonly userId: string; readonly sessionId: string } | null;
}

export interface VerifiedToken {
  readonly claims: TokenClaims;
  /** Unix milliseconds, including clock skew. */
  readonly goodUntil: number;
}

export interface TokenServiceOptions {
  readonly keyRing: KeyRing;
  readonly installationId: string;
  readonly clock: Clock;
}

export class TokenService {
  readonly #options: TokenServiceOptions;
  /** Importing keys costs as much as a signature, so it is done once per published key set. */
  #keys: { readonly jwks: JSONWebKeySet; readonly find: JWTVerifyGetKey } | null = null;

  constructor(options: TokenServiceOptions) {
    this.#options = options;
  }

  async issueSession(session: {
    readonly userId: string;
    readonly sessionId: string;
    readonly ttlSeconds: number;
  }): Promise<string> {
    const claims: z.infer<typeof sessionClaims> = { aud: "platform", sub: session.userId, sid: session.sessionId };
    return this.#sign(claims, session.ttlSeconds);
  }

  async issueNodeIdentity(identity: {
    readonly nodeId: string;
    readonly projectId: string;
    readonly keyThumbprint: string;
    readonly ttlSeconds: number;
  }): Promise<string> {
    const { nodeId, projectId, keyThumbprint } = identity;
    const claims: z.infer<typeof nodeClaims> = { aud: "node", sub: nodeId, project: projectId, key: keyThumbprint };
    return this.#sign(claims, identity.ttlSeconds);
  }

  async issueWorker(worker: {
    readonly agentId: string;
    readonly nodeId: string;
    readonly projectId: string;
    readonly keyThumbprint: string;
    readonly run: number;
    readonly ttlSeconds: number;
  }): Promise<string> {
    const { agentId: sub, nodeId: node, projectId: project, keyThumbprint: key, run } = worker;
    const claims: z.infer<typeof workerClaims> = { aud: "inference", sub, node, project, key, run };
    return this.#sign(claims, worker.ttlSeconds);
  }

  async issueConnect(grant: WorkloadClaims, ttlSeconds: number): Promise<string> {
    const { nodeId, workload, projectId: project, keyThumbprint: key, holder } = grant;
    const subject = holder === null ? { sub: nodeId } : { sub: holder.userId, sid: holder.sessionId };
    const claims: ConnectClaims = { aud: workloadAudience(nodeId, workload), ...subject, project, key };
    return this.#sign(claims, ttlSeconds);
  }

  /** @throws DomainError `expired_credential`, `invalid_credential` */
  async verify(token: string): Promise<TokenClaims> {
    return (await this.check(token)).claims;
  }

  /** Also returns the token's expiry, for caching. */
  async check(token: string): Promise<VerifiedToken> {
    const { payload } = await this.#check(token);
    const claims = claimsSchema.safeParse(payload);
    if (!claims.success || payload.exp === undefined) throw invalid("a token of another kind");
    const { data } = claims;
    const told = isNamed(data) ? tokenClaims(data) : connectClaims(data);
    if (told === null) throw invalid("a token of another kind");
    return { claims: told, goodUntil: (payload.exp + CLOCK_SKEW_SECONDS) * 1000 };
  }

  async #sign(claims: JWTPayload, ttlSeconds: number): Promise<string> {
    const { keyRing, installationId, clock } = this.#options;
    const now = Math.floor(clock.now() / 1000);
    return new SignJWT(claims)
      .setProtectedHeader({ alg: SIGNING_ALGORITHM, kid: keyRing.signing.keyId, typ: "JWT" })
      .setIssuer(installationId)
      .setIssuedAt(now)
      .setExpirationTime(now + ttlSeconds)
      .sign(keyRing.signing.privateKey);
  }

  async #check(token: string): Promise<JWTVerifyResult> {
    const { installationId, clock } = this.#options;
    try {
      return await jwtVerify(token, this.#findKey(), {
        issuer: installationId,
        algorithms: [SIGNING_ALGORITHM],
        clockTolerance: CLOCK_SKEW_SECONDS,
        currentDate: new Date(clock.now()),
        requiredClaims: ["exp", "iat"],
      });
    } catch (error) {
      if (error instanceof errors.JWTExpired) {
        throw new DomainError("expired_credential", "This token has expired.", { cause: error });
      }
      if (error instanceof errors.JOSEError) throw invalid(error.message);
      throw error;
    }
  }

  #findKey(): JWTVerifyGetKey {
    const jwks = this.#options.keyRing.publicJwks();
    if (this.#keys?.jwks !== jwks) this.#keys = { jwks, find: createLocalJWKSet(jwks) };
    return this.#keys.find;
  }
}

type NamedClaims = z.infer<typeof namedClaims>;

function isNamed(claims: NamedClaims | ConnectClaims): claims is NamedClaims {
  return namedClaims.options.some((option) => option.shape.aud.value === claims.aud);
}

function connectClaims({ aud, sub, sid, project, key }: ConnectClaims): WorkloadClaims | null {
  const workload = workloadOf(aud);
  const holder = sid === undefined ? null : { userId: sub, sessionId: sid };
  // Without a session, it was requested by the node.
  if (holder === null && sub !== workload.nodeId) return null;
  return { audience: "workload", ...workload, projectId: project, keyThumbprint: key, holder };
}

function tokenClaims(claims: NamedClaims): TokenClaims {
  switch (claims.aud) {
    case "platform":
      return { audience: "platform", userId: claims.sub, sessionId: claims.sid };
    case "node":
      return { audience: "node", nodeId: claims.sub, projectId: claims.project, keyThumbprint: claims.key };
    case "inference": {
      const { sub: agentId, node: nodeId, project: projectId, key: keyThumbprint, run } = claims;
      return { audience: "inference", agentId, nodeId, projectId, keyThumbprint, run };
    }
  }
}

function invalid(note: string): DomainError {
  return new DomainError("invalid_credential", "This token is not valid for this installation.", { note });
}
