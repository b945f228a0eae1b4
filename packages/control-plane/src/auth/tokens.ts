import type { Clock } from "@fairlead/protocol/clock";
import { CLOCK_SKEW_SECONDS } from "@fairlead/protocol/enrollment";
import { DomainError } from "@fairlead/protocol/errors";
import { createLocalJWKSet, errors, type JWTPayload, type JWTVerifyResult, jwtVerify, SignJWT } from "jose";
import { z } from "zod";
import { type KeyRing, SIGNING_ALGORITHM } from "./key-ring.ts";

/** Our signed tokens: JWTs of this installation, told apart by their audience (design §5). */

const sessionClaims = z.object({ aud: z.literal("platform"), sub: z.string(), sid: z.string() });
const nodeClaims = z.object({ aud: z.literal("node"), sub: z.string(), project: z.string(), key: z.string() });
const claimsSchema = z.discriminatedUnion("aud", [sessionClaims, nodeClaims]);

/** What a good token says. Whether its session or node is still there is `authenticate`'s question. */
export type TokenClaims =
  | { readonly audience: "platform"; readonly userId: string; readonly sessionId: string }
  | {
      readonly audience: "node";
      readonly nodeId: string;
      readonly projectId: string;
      /** RFC 7638 thumbprint of the node's signing key: a node that enrols anew cuts off its older tokens. */
      readonly keyThumbprint: string;
    };

export interface TokenServiceOptions {
  readonly keyRing: KeyRing;
  readonly installationId: string;
  readonly clock: Clock;
}

export class TokenService {
  readonly #options: TokenServiceOptions;

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

  /** @throws DomainError `expired_credential`, `invalid_credential` */
  async verify(token: string): Promise<TokenClaims> {
    const { payload } = await this.#check(token);
    const claims = claimsSchema.safeParse(payload);
    if (!claims.success) throw invalid("a token of another kind");
    if (claims.data.aud === "platform") {
      return { audience: "platform", userId: claims.data.sub, sessionId: claims.data.sid };
    }
    const { sub, project, key } = claims.data;
    return { audience: "node", nodeId: sub, projectId: project, keyThumbprint: key };
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
    const { keyRing, installationId, clock } = this.#options;
    try {
      return await jwtVerify(token, createLocalJWKSet(keyRing.publicJwks()), {
        issuer: installationId,
        algorithms: [SIGNING_ALGORITHM],
        clockTolerance: CLOCK_SKEW_SECONDS,
        currentDate: new Date(clock.now()),
        requiredClaims: ["exp", "iat"],
      });
    } catch (error) {
      if (error instanceof errors.JWTExpired) {
        throw new DomainError("expired_credential", "This token has run out; get a new one.", { cause: error });
      }
      if (error instanceof errors.JOSEError) throw invalid(error.message);
      throw error;
    }
  }
}

function invalid(note: string): DomainError {
  return new DomainError("invalid_credential", "This token is not a valid one of this installation.", { note });
}
