import type { SealingPublicKey } from "@fairlead/protocol/enrollment";
import { SECRET_BINDING } from "@fairlead/protocol/secrets";
import { CompactEncrypt, importJWK } from "jose";

export interface NodeSealing {
  readonly key: SealingPublicKey;
  /** In the protected header, which the node checks, so that JWEs cannot be swapped. */
  readonly binding: string;
}

/** Seals a secret so that only the node can open it (decisions/0024): ECDH-ES over X25519, A256GCM. @returns a compact JWE. */
export async function sealToNode(plain: Uint8Array, { key, binding }: NodeSealing): Promise<string> {
  return new CompactEncrypt(plain)
    .setProtectedHeader({ alg: "ECDH-ES", enc: "A256GCM", [SECRET_BINDING]: binding })
    .encrypt(await importJWK(key, "ECDH-ES"));
}
