import { join } from "node:path";
import { sealingPublicKeySchema, signingPublicKeySchema } from "@fairlead/protocol/enrollment";
import { z } from "zod";
import { DurableRecord, type Loaded, type Recovered } from "./durable-record.ts";
import type { FileLayer } from "./files.ts";

const privatePart = z.string().regex(/^[A-Za-z0-9_-]{43}$/);

const nodeKeysSchema = z.object({
  /** Ed25519: signs the assertions that renew the identity. */
  signing: signingPublicKeySchema.extend({ d: privatePart }),
  /** X25519: decrypts this node's secrets. */
  sealing: sealingPublicKeySchema.extend({ d: privatePart }),
});
export type NodeKeys = z.infer<typeof nodeKeysSchema>;

const nodeIdentitySchema = z.object({
  platformUrl: z.string(),
  nodeId: z.string(),
  keys: nodeKeysSchema,
  /** Null until the platform host has responded: the keys are saved before anything is sent. */
  enrolled: z
    .object({
      projectId: z.string(),
      installationId: z.string(),
      /** Hash of the used token (hex): a different token for the same node re-enrols it. */
      bootstrapTokenSha256: z.string(),
    })
    .nullable(),
});
export type SavedIdentity = z.infer<typeof nodeIdentitySchema>;
export type EnrolledIdentity = SavedIdentity & { readonly enrolled: NonNullable<SavedIdentity["enrolled"]> };

export function isEnrolled(identity: SavedIdentity): identity is EnrolledIdentity {
  return identity.enrolled !== null;
}

/** The node's identity, stored separately, so that damage to other files does not affect it. */
export class IdentityStore {
  readonly #record: DurableRecord<SavedIdentity>;

  constructor(files: FileLayer, folder: string) {
    this.#record = new DurableRecord(files, join(folder, "identity.json"), nodeIdentitySchema);
  }

  load(): Promise<Loaded<SavedIdentity>> {
    return this.#record.load();
  }

  recover(): Promise<Recovered<SavedIdentity>> {
    return this.#record.recover();
  }

  save(identity: SavedIdentity): Promise<void> {
    return this.#record.save(identity);
  }
}
