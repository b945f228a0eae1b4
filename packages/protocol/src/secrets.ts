import { z } from "zod";

/** Secrets of nodes: names, requirements of workloads, and delivery to the daemon. */

/** A secret's name is a file name on the node: no slash, no leading dot, and no collision with agents' secrets. */
export const secretNameSchema = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_.-]{0,127}$/, "must be 1 to 128 of A-Z a-z 0-9 _ . - and start with a letter or _")
  .regex(/^(?!agt_[0-9a-z]{26}\.)/, "must not start with an agent ID and a dot");

/** The key of a secret on the link and in the vault: an engine's name, or `<agent id>.<name>`. */
export const secretKeySchema = z.string().regex(/^[A-Za-z_][A-Za-z0-9_.-]{0,191}$/);

/** The folder of secret files in a workload. */
export const SECRETS_MOUNT_PATH = "/run/secrets";

/** A secret in the API. Values are never returned. */
export const nodeSecretSchema = z
  .object({
    name: secretNameSchema,
    version: z
      .number()
      .int()
      .describe("Increases with every change. A deleted secret that is set again continues the count."),
    updatedAt: z.string(),
    stale: z.boolean().describe("The node enrolled again with a new key and cannot decrypt the secret. Set it again."),
  })
  .meta({ id: "NodeSecret" });
export type NodeSecret = z.infer<typeof nodeSecretSchema>;

/** The file with a workload's own token, next to its secrets. */
export const WORKER_TOKEN_FILE = "fairlead-token";

export const workloadSecretSchema = z.object({
  name: secretNameSchema,
  /** Default: its name. */
  key: secretKeySchema.optional(),
  /** `registry`: only for pulling the image; hidden from the workload. */
  as: z.enum(["file", "env", "registry"]),
  /** Opaque id of one value, never reused, even by a restored store. Null: not set; the workload waits for it. */
  version: z.string().nullable(),
});
export type WorkloadSecret = z.infer<typeof workloadSecretSchema>;

export function keyOfSecret({ name, key }: Pick<WorkloadSecret, "name" | "key">): string {
  return key ?? name;
}

/** Request of a daemon for a secret; the node is determined by the credential. */
export const secretRequestSchema = z.object({ name: secretKeySchema });
export type SecretRequest = z.infer<typeof secretRequestSchema>;

export const secretAnswerSchema = z.discriminatedUnion("state", [
  z.object({
    state: z.literal("sealed"),
    version: z.string(),
    /** A compact JWE (ECDH-ES over X25519, A256GCM) for the node's sealing key; its header contains a `SecretBinding`. */
    jwe: z.string(),
  }),
  z.object({ state: z.literal("missing") }),
  /** It was sealed to a previous key of this node and cannot be decrypted. */
  z.object({ state: z.literal("stale") }),
]);
export type SecretAnswer = z.infer<typeof secretAnswerSchema>;

/** Identifies the value in the JWE's protected header, so that secrets cannot be swapped. */
export const SECRET_BINDING = "fairlead-secret";

export function secretBinding(nodeId: string, name: string, version: string): string {
  return `${nodeId} ${name} ${version}`;
}
