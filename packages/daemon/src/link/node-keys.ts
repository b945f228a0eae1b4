import { createHash } from "node:crypto";
import type { SealingPublicKey, SigningPublicKey } from "@fairlead/protocol/enrollment";
import { ASSERTION_TTL_SECONDS, sealingPublicKeySchema, signingPublicKeySchema } from "@fairlead/protocol/enrollment";
import { exportJWK, generateKeyPair, importJWK, SignJWT } from "jose";
import { z } from "zod";
import type { EnrolledIdentity, NodeKeys } from "../state/identity-store.ts";

const privateKeySchema = z.object({ d: z.string() });

export async function generateNodeKeys(): Promise<NodeKeys> {
  const signing = await exportPrivate("Ed25519", "Ed25519");
  const sealing = await exportPrivate("ECDH-ES", "X25519");
  return {
    signing: { ...signingPublicKeySchema.parse(signing), ...privateKeySchema.parse(signing) },
    sealing: { ...sealingPublicKeySchema.parse(sealing), ...privateKeySchema.parse(sealing) },
  };
}

async function exportPrivate(algorithm: string, curve: string): Promise<unknown> {
  const { privateKey } = await generateKeyPair(algorithm, { crv: curve, extractable: true });
  return exportJWK(privateKey);
}

export function publicKeys(keys: NodeKeys): { signingKey: SigningPublicKey; sealingKey: SealingPublicKey } {
  return {
    signingKey: signingPublicKeySchema.parse(keys.signing),
    sealingKey: sealingPublicKeySchema.parse(keys.sealing),
  };
}

export function sha256Of(bootstrapToken: string): string {
  return createHash("sha256").update(bootstrapToken).digest("hex");
}

/** Proof of possession of the signing key, for enrolment. Contains no times, because the clock may be wrong at first boot. */
export async function signEnrollProof(
  keys: NodeKeys,
  enrollment: { nodeId: string; bootstrapToken: string },
): Promise<string> {
  return new SignJWT({ bootstrapTokenSha256: sha256Of(enrollment.bootstrapToken) })
    .setProtectedHeader({ alg: "EdDSA" })
    .setSubject(enrollment.nodeId)
    .sign(await importJWK(keys.signing, "EdDSA"));
}

/**
 * Proof of possession that renews the identity: a JWT (EdDSA) with `iss` = `sub` = node ID and `aud` = installation ID.
 * @param serverTime Unix milliseconds on the server's clock. @param jti unique per assertion.
 */
export async function signAssertion(
  identity: EnrolledIdentity,
  options: { serverTime: number; jti: string },
): Promise<string> {
  const issuedAt = Math.floor(options.serverTime / 1000);
  return new SignJWT()
    .setProtectedHeader({ alg: "EdDSA" })
    .setIssuer(identity.nodeId)
    .setSubject(identity.nodeId)
    .setAudience(identity.enrolled.installationId)
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + ASSERTION_TTL_SECONDS)
    .setJti(options.jti)
    .sign(await importJWK(identity.keys.signing, "EdDSA"));
}
