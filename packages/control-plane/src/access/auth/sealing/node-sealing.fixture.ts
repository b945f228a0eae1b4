import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { type SealingPublicKey, sealingPublicKeySchema } from "@fairlead/protocol/enrollment";
import { SECRET_BINDING } from "@fairlead/protocol/secrets";
import { compactDecrypt } from "jose";

/** A node's sealing key, and what it opens with it. */
export class NodeSealingKey {
  readonly #privateKey: KeyObject;
  readonly publicKey: SealingPublicKey;

  constructor() {
    const pair = generateKeyPairSync("x25519");
    this.#privateKey = pair.privateKey;
    this.publicKey = sealingPublicKeySchema.parse(pair.publicKey.export({ format: "jwk" }));
  }

  async open(jwe: string): Promise<{ readonly value: string; readonly binding: unknown }> {
    const { plaintext, protectedHeader } = await compactDecrypt(jwe, this.#privateKey);
    return { value: new TextDecoder().decode(plaintext), binding: protectedHeader[SECRET_BINDING] };
  }
}
