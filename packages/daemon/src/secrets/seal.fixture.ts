import { SECRET_BINDING, type SecretAnswer, secretBinding } from "@fairlead/protocol/secrets";
import { CompactEncrypt, importJWK } from "jose";
import type { NodeKeys } from "../state/identity-store.ts";
import { OWNER } from "../testing/builders.ts";

type Sealed = Extract<SecretAnswer, { state: "sealed" }>;

interface Sealing {
  readonly keys: Pick<NodeKeys, "sealing">;
  readonly name: string;
  readonly value: string | Uint8Array;
  readonly version?: string;
}

/** The control plane's response for a secret, encrypted to the node with these keys. */
export async function sealed({ keys, name, value, version = "1.a" }: Sealing): Promise<Sealed> {
  const { d: _, ...publicKey } = keys.sealing;
  const binding = secretBinding(OWNER.nodeId, name, version);
  const jwe = await new CompactEncrypt(typeof value === "string" ? new TextEncoder().encode(value) : value)
    .setProtectedHeader({ alg: "ECDH-ES", enc: "A256GCM", [SECRET_BINDING]: binding })
    .encrypt(await importJWK(publicKey, "ECDH-ES"));
  return { state: "sealed", version, jwe };
}
