import { SECRET_BINDING } from "@fairlead/protocol/secrets";
import { compactDecrypt, importJWK } from "jose";
import type { NodeKeys } from "../state/identity-store.ts";

/** Opens what was sealed to this node. @param binding which value it must be. @throws Error that says nothing of the value */
export async function openSecret(jwe: string, { keys, binding }: OpenOptions): Promise<Uint8Array> {
  const { plaintext, protectedHeader } = await compactDecrypt(jwe, await importJWK(keys.sealing, "ECDH-ES"), {
    keyManagementAlgorithms: ["ECDH-ES"],
    contentEncryptionAlgorithms: ["A256GCM"],
  });
  if (protectedHeader[SECRET_BINDING] !== binding) throw new Error("it was sealed as another secret");
  return plaintext;
}

interface OpenOptions {
  readonly keys: Pick<NodeKeys, "sealing">;
  readonly binding: string;
}
