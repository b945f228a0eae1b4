import { join } from "node:path";
import { sealingPublicKeySchema, signingPublicKeySchema } from "@fairlead/protocol/enrollment";
import { z } from "zod";
import { DurableRecord, type Loaded } from "./durable-record.ts";
import type { FileLayer } from "./files.ts";

const privatePart = z.string().regex(/^[A-Za-z0-9_-]{43}$/);

const nodeKeysSchema = z.object({
  /** Ed25519: signs the assertions that renew the identity. */
  signing: signingPublicKeySchema.extend({ d: privatePart }),
  /** X25519: opens secrets that were sealed to this node. */
  sealing: sealingPublicKeySchema.extend({ d: privatePart }),
});
export type NodeKeys = z.infer<typeof nodeKeysSchema>;

const nodeIdentitySchema = z.object({
  platformUrl: z.string(),
  nodeId: z.string(),
  keys: nodeKeysSchema,
  /** Null until the platform host has answered: the keys rest on disk before anything is sent (design §5). */
  enrolled: z
    .object({
      projectId: z.string(),
      installationId: z.string(),
      /** Of the token that did it (hex): another token for the same node asks to enrol anew. */
      bootstrapTokenSha256: z.string(),
    })
    .nullable(),
});
export type NodeIdentity = z.infer<typeof nodeIdentitySchema>;
export type EnrolledIdentity = NodeIdentity & { readonly enrolled: NonNullable<NodeIdentity["enrolled"]> };

export function isEnrolled(identity: NodeIdentity): identity is EnrolledIdentity {
  return identity.enrolled !== null;
}

/** Who this node is. It rests apart from everything else, so that damage elsewhere never costs the identity. */
export class IdentityStore {
  readonly #record: DurableRecord<NodeIdentity>;

  constructor(files: FileLayer, folder: string) {
    this.#record = new DurableRecord(files, join(folder, "identity.json"), nodeIdentitySchema);
  }

  load(): Promise<Loaded<NodeIdentity>> {
    return this.#record.load();
  }

  save(identity: NodeIdentity): Promise<void> {
    return this.#record.save(identity);
  }
}
