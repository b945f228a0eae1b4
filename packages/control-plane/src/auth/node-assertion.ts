import { createHash } from "node:crypto";
import { ASSERTION_TTL_SECONDS, CLOCK_SKEW_SECONDS, type SigningPublicKey } from "@fairlead/protocol/enrollment";
import { DomainError } from "@fairlead/protocol/errors";
import { importJWK, type JWTPayload, type JWTVerifyOptions, jwtVerify } from "jose";

/** What a node signs with its own key: the proof at enrolment, and the assertions that renew its identity. */

/** RFC 7638 over the members that an Ed25519 key has, in their order. */
export function keyThumbprint(key: SigningPublicKey): string {
  return createHash("sha256")
    .update(JSON.stringify({ crv: key.crv, kty: key.kty, x: key.x }))
    .digest("base64url");
}

export interface EnrollProofExpectation {
  readonly key: SigningPublicKey;
  readonly nodeId: string;
  readonly bootstrapTokenSha256: string;
}

/** @throws DomainError invalid_request (param `proof`) */
export async function verifyEnrollProof(proof: string, expected: EnrollProofExpectation): Promise<void> {
  const claims = await verifiedClaims(proof, expected.key, { subject: expected.nodeId });
  if (claims?.["bootstrapTokenSha256"] !== expected.bootstrapTokenSha256) {
    throw new DomainError("invalid_request", "The proof was not made by this signing key for this bootstrap token.", {
      param: "proof",
    });
  }
}

export interface AssertionExpectation {
  readonly key: SigningPublicKey;
  readonly nodeId: string;
  readonly installationId: string;
  /** Unix milliseconds. */
  readonly now: number;
}

/** @returns the assertion's `jti`, for the caller to refuse a second use. @throws DomainError invalid_credential */
export async function verifyAssertion(assertion: string, expected: AssertionExpectation): Promise<string> {
  const claims = await verifiedClaims(assertion, expected.key, {
    subject: expected.nodeId,
    issuer: expected.nodeId,
    audience: expected.installationId,
    currentDate: new Date(expected.now),
    clockTolerance: CLOCK_SKEW_SECONDS,
    maxTokenAge: ASSERTION_TTL_SECONDS,
    requiredClaims: ["exp", "iat", "jti"],
  });
  if (!claims?.jti) throw assertionRefused();
  return claims.jti;
}

/** The same words for a node that does not exist: strangers must not learn which do. */
export function assertionRefused(): DomainError {
  const message =
    "The assertion is not that of a node enrolled here, or has run out; check the node's clock, and whether it was deleted.";
  return new DomainError("invalid_credential", message);
}

async function verifiedClaims(
  jwt: string,
  key: SigningPublicKey,
  options: JWTVerifyOptions,
): Promise<JWTPayload | null> {
  try {
    const { payload } = await jwtVerify(jwt, await importJWK(key, "EdDSA"), { ...options, algorithms: ["EdDSA"] });
    return payload;
  } catch {
    return null;
  }
}
