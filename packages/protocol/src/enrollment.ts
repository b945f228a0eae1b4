import { z } from "zod";
import { namedBuildSchema } from "./daemon-builds.ts";
import { parseJson } from "./values/parse-json.ts";
import { anyText, protocolVersionsSchema } from "./values/text.ts";

/** How a daemon becomes a node: the bootstrap token, the enrol call, and the renewal of its identity. */

export const BOOTSTRAP_TOKEN_PREFIX = "flb_";

/** Content of a bootstrap token. The whole token is the secret: only its SHA-256 is stored. */
export const bootstrapTokenSchema = z.object({
  /** Platform host that issued the token. */
  url: z.url({ protocol: /^https?$/ }),
  nodeId: z.string(),
  secret: z.string().min(32),
  /** The daemon build to install, if the platform host offers one. */
  build: namedBuildSchema.optional(),
});
export type BootstrapToken = z.infer<typeof bootstrapTokenSchema>;

export function formatBootstrapToken(token: BootstrapToken): string {
  const bytes = new TextEncoder().encode(JSON.stringify(token));
  const text = btoa(String.fromCharCode(...bytes));
  return BOOTSTRAP_TOKEN_PREFIX + text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** @returns the token's content, or null if the text is not a bootstrap token. */
export function parseBootstrapToken(text: string): BootstrapToken | null {
  if (!text.startsWith(BOOTSTRAP_TOKEN_PREFIX)) return null;
  try {
    const base64 = text.slice(BOOTSTRAP_TOKEN_PREFIX.length).replaceAll("-", "+").replaceAll("_", "/");
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    const parsed = bootstrapTokenSchema.safeParse(parseJson(bytes));
    return parsed.success ? parsed.data : null;
  } catch {
    return null;
  }
}

const base64url32Bytes = z.string().regex(/^[A-Za-z0-9_-]{43}$/);

/** Ed25519 key for the assertions that renew the identity (RFC 8037). */
export const signingPublicKeySchema = z.object({
  kty: z.literal("OKP"),
  crv: z.literal("Ed25519"),
  x: base64url32Bytes,
});
export type SigningPublicKey = z.infer<typeof signingPublicKeySchema>;

/** X25519 key for secrets that only this node can decrypt (RFC 8037, ECDH-ES). */
export const sealingPublicKeySchema = z.object({
  kty: z.literal("OKP"),
  crv: z.literal("X25519"),
  x: base64url32Bytes,
});
export type SealingPublicKey = z.infer<typeof sealingPublicKeySchema>;

/**
 * `POST /v1/nodes/{id}/enroll`, with the bootstrap token as Bearer. Repeating it with the same keys returns the same node.
 * `proof` is a JWT (EdDSA) by the signing key: `sub` = node ID, `bootstrapTokenSha256` = SHA-256 (hex) of the whole bootstrap
 * token.
 * It has no times: a machine's clock may be wrong at first boot (harvester/harvester#2860), and the token limits its lifetime.
 * Without it, anyone who obtains a spent token could repeat the call with the node's public key.
 */
export const enrollRequestSchema = z.object({
  signingKey: signingPublicKeySchema,
  sealingKey: sealingPublicKeySchema,
  proof: z.string().max(2048),
  daemonVersion: anyText(64),
  protocolVersions: protocolVersionsSchema,
  operatingSystem: anyText(256),
});
export type EnrollRequest = z.infer<typeof enrollRequestSchema>;

export const identityTokenSchema = z.object({
  /** A signed JWT with audience `node`. */
  identityToken: z.string(),
  /** Seconds, counted by the node with its monotonic clock. */
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

/** Lifetime of an assertion in seconds. */
export const ASSERTION_TTL_SECONDS = 120;
/** Clock skew allowed in both directions on every token, in seconds. */
export const CLOCK_SKEW_SECONDS = 60;
