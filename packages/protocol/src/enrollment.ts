import { z } from "zod";
import { namedBuildSchema } from "./daemon-builds.ts";
import { anyText } from "./text.ts";

/** How a daemon becomes a node: the bootstrap token, the enrol call, and the renewal of its identity. */

export const BOOTSTRAP_TOKEN_PREFIX = "flb_";

/** What a bootstrap token says. The whole token is the secret: only its SHA-256 is stored. */
export const bootstrapTokenSchema = z.object({
  /** Platform host that issued it. */
  url: z.url({ protocol: /^https?$/ }),
  nodeId: z.string(),
  secret: z.string().min(32),
  /** The build of the daemon to install, where the platform host offers one. */
  build: namedBuildSchema.optional(),
});
export type BootstrapToken = z.infer<typeof bootstrapTokenSchema>;

export function formatBootstrapToken(token: BootstrapToken): string {
  const bytes = new TextEncoder().encode(JSON.stringify(token));
  const text = btoa(String.fromCharCode(...bytes));
  return BOOTSTRAP_TOKEN_PREFIX + text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** @returns the token's content, or null for anything that is not a bootstrap token. */
export function parseBootstrapToken(text: string): BootstrapToken | null {
  if (!text.startsWith(BOOTSTRAP_TOKEN_PREFIX)) return null;
  try {
    const base64 = text.slice(BOOTSTRAP_TOKEN_PREFIX.length).replaceAll("-", "+").replaceAll("_", "/");
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    const parsed = bootstrapTokenSchema.safeParse(JSON.parse(new TextDecoder().decode(bytes)));
    return parsed.success ? parsed.data : null;
  } catch {
    return null;
  }
}

const base64url32Bytes = z.string().regex(/^[A-Za-z0-9_-]{43}$/);

/** Ed25519, for the assertions that renew the identity (RFC 8037). */
export const signingPublicKeySchema = z.object({
  kty: z.literal("OKP"),
  crv: z.literal("Ed25519"),
  x: base64url32Bytes,
});
export type SigningPublicKey = z.infer<typeof signingPublicKeySchema>;

/** X25519, for secrets that only this node can open (RFC 8037, ECDH-ES). */
export const sealingPublicKeySchema = z.object({
  kty: z.literal("OKP"),
  crv: z.literal("X25519"),
  x: base64url32Bytes,
});
export type SealingPublicKey = z.infer<typeof sealingPublicKeySchema>;

/**
 * `POST /v1/nodes/{id}/enroll`, with the bootstrap token as Bearer. Repeating it with the same keys answers the same node.
 * `proof` is a JWT (EdDSA) by the signing key: `sub` = node id, `bootstrapTokenSha256` = SHA-256 (hex) of the whole bootstrap token.
 * It carries no times: a machine's clock may be off at first boot (harvester/harvester#2860), and the token bounds it. With it,
 * whoever reads a spent token cannot repeat the call by naming the node's public key.
 */
export const enrollRequestSchema = z.object({
  signingKey: signingPublicKeySchema,
  sealingKey: sealingPublicKeySchema,
  proof: z.string().max(2048),
  daemonVersion: anyText().max(64),
  protocolVersions: z.array(z.number().int()).min(1).max(16),
  operatingSystem: anyText().max(256),
});
export type EnrollRequest = z.infer<typeof enrollRequestSchema>;

export const identityTokenSchema = z.object({
  /** A signed JWT, audience `node`. */
  identityToken: z.string(),
  /** Seconds; the node counts them with its own monotonic clock. */
  expiresIn: z.number().int().positive(),
});
export type IdentityToken = z.infer<typeof identityTokenSchema>;

export const enrollAnswerSchema = identityTokenSchema.extend({
  nodeId: z.string(),
  projectId: z.string(),
  installationId: z.string(),
});
export type EnrollAnswer = z.infer<typeof enrollAnswerSchema>;

/** `POST /v1/nodes/{id}/identity-tokens`: a JWT (EdDSA) by the node's signing key: `iss`=`sub`=node id, `aud`=installation id, `iat`, `exp`, `jti`. */
export const identityTokenRequestSchema = z.object({ assertion: z.string().max(4096) });

/** How long an assertion may live, in seconds. */
export const ASSERTION_TTL_SECONDS = 120;
/** Clock skew allowed both ways on every token, in seconds. */
export const CLOCK_SKEW_SECONDS = 60;
