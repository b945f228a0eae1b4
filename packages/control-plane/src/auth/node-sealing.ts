import type { SealingPublicKey } from "@fairlead/protocol/enrollment";
import { CompactEncrypt, importJWK } from "jose";

/** Seals a secret so that only the node can open it (design §6, Secrets): ECDH-ES over X25519, A256GCM. @returns a compact JWE. */
export async function sealToNode(plain: Uint8Array, key: SealingPublicKey): Promise<string> {
  return new CompactEncrypt(plain)
    .setProtectedHeader({ alg: "ECDH-ES", enc: "A256GCM" })
    .encrypt(await importJWK(key, "ECDH-ES"));
}
