import { createHash } from "node:crypto";
import { ASSERTION_TTL_SECONDS, CLOCK_SKEW_SECONDS, type SigningPublicKey } from "@fairlead/protocol/enrollment";
import { DomainError } from "@fairlead/protocol/errors";
import { importJWK, type JWTPayload, type JWTVerifyOptions, jwtVerify } from "jose";

/** Signatures of a node: the proof at enrollment, and the assertions that renew its identity. */

/** RFC 7638 thumbprint of an Ed25519 key. */
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
    throw new DomainError(
      "invalid_request",
      "The proof was not created with this signing key for this bootstrap token.",
      {
        param: "proof",
      },
    );
  }
}

export interface AssertionExpectation {
  readonly key: SigningPublicKey;
  readonly nodeId: string;
  readonly installationId: string;
  /** Unix milliseconds. */
  readonly now: number;
}

const MAX_JTI = 128;

/** @returns the assertion's `jti`, so that the caller can reject reuse. @throws DomainError invalid_credential */
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
  // Remembered until the assertion expires.
  const jti = claims?.jti;
  if (typeof jti !== "string" || jti === "" || jti.length > MAX_JTI) throw assertionRefused();
  return jti;
}

/** Used for unknown nodes as well, so that strangers cannot probe for nodes. */
export function assertionRefused(): DomainError {
  const message =
    "The assertion is expired or not from a node enrolled here. Check the node's clock, and whether the node was deleted.";
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
